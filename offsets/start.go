package offsets

import (
	"context"

	"github.com/google/uuid"
)

// Assigned is a partition to be claimed, with the position at which it begins
// if the ledger does not know it.
type Assigned struct {
	Partition int32
	Start     int64
}

const sqlStart = `
insert into $consumer_offset (consumer_group, topic, partition, cluster_id, topic_id, first_offset, next_offset)
select $1, $2, a.partition, $3, $4, a.start, a.start
from unnest($5::int[], $6::bigint[]) as a (partition, start)
order by a.partition
on conflict do nothing`

const sqlStarted = `select exists (select from $consumer_offset where consumer_group = $1 and topic = $2)`

// Started reports whether the group has ever begun on the topic.
func (l *Ledger) Started(ctx context.Context, db DB) (bool, error) {
	var started bool
	err := db.QueryRow(ctx, l.sql.started, l.group, l.topic).Scan(&started)
	return started, wrap("look whether group "+l.group+" has started on "+l.topic, err)
}

// Start stores where the group begins on each partition that the topic has, in
// one transaction and before anything is fetched, and reports whether this
// call decided it. Partitions that appear later are not covered: they begin at
// their own beginning, when they are claimed.
//
// Two members may start at once, with different ideas of "latest". All inserts
// are sorted by partition, so the one that inserts the first partition decides:
// the other waits for it, inserts less than it asked for, and rolls back.
func (l *Ledger) Start(ctx context.Context, db DB, id Identity, partitions []Assigned) (bool, error) {
	tx, err := db.Begin(ctx)
	if err != nil {
		return false, wrap("start "+l.topic, err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // after a commit there is nothing to roll back
	numbers, starts := split(partitions)
	tag, err := tx.Exec(ctx, l.sql.start, l.group, l.topic, id.ClusterID, uuid.UUID(id.TopicID), numbers, starts)
	if err != nil {
		return false, wrap("start "+l.topic, err)
	}
	if tag.RowsAffected() != int64(len(partitions)) {
		return false, nil
	}
	return true, wrap("start "+l.topic, tx.Commit(ctx))
}

func split(partitions []Assigned) (numbers []int32, starts []int64) {
	for _, a := range partitions {
		numbers = append(numbers, a.Partition)
		starts = append(starts, a.Start)
	}
	return numbers, starts
}
