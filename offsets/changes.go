package offsets

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Changed is a change of a position as it was written down.
type Changed struct {
	ID        int64
	Partition int32
	Action    Action
	// From and To are the next offsets before and after.
	From, To int64
	// Epoch is the partition's from this change on.
	Epoch int64
	Note
	// At is by the database's clock.
	At time.Time
	// Left and Taken are the topics of the two positions; set by Adopt only.
	Left, Taken Identity
}

const sqlChanges = `
select id, partition, action, old_offset, new_offset, epoch, reason, changed_by, changed_at,
  coalesce(old_cluster_id, ''), old_topic_id, coalesce(new_cluster_id, ''), new_topic_id
from $offset_change
where consumer_group = $1 and topic = $2
order by id desc
limit $3`

// Changes returns the last changes of the group's positions in the topic, the
// newest first.
func (l *Ledger) Changes(ctx context.Context, db DB, limit int) ([]Changed, error) {
	operation := "read the changes of " + l.topic
	rows, err := db.Query(ctx, l.sql.changes, l.group, l.topic, limit)
	if err != nil {
		return nil, wrap(operation, err)
	}
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Changed, error) {
		var c Changed
		var left, taken uuid.NullUUID
		err := row.Scan(&c.ID, &c.Partition, &c.Action, &c.From, &c.To, &c.Epoch, &c.Reason, &c.By, &c.At,
			&c.Left.ClusterID, &left, &c.Taken.ClusterID, &taken)
		c.Left.TopicID, c.Taken.TopicID = left.UUID, taken.UUID
		return c, err
	})
	return changes, wrap(operation, err)
}
