package offsets

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const sqlProgress = `
select partition, coalesce(owner, ''), state, coalesce(reason, ''), epoch, first_offset, next_offset, leader_epoch,
  coalesce(record_time, 'epoch'), updated_at, records, duplicates_producer, duplicates_redelivery, dead_letters, rewound, skipped,
  (select count(*) from $dead_letter as d
   where d.consumer_group = o.consumer_group and d.topic = o.topic and d.partition = o.partition and d.state = 'dead'),
  cluster_id, topic_id
from $consumer_offset as o
where consumer_group = $1 and topic = $2
order by partition`

// Progress is the account of one partition: what has passed between First and
// Next. It adds up, whatever a person has changed:
//
//	Next - First + Rewound = Records + Gaps + Skipped
type Progress struct {
	Partition int32
	// Owner holds the claim, empty where nobody does. State is "open" or
	// "halted", and Reason says why it is halted.
	Owner, State, Reason string
	Epoch                int64
	// First is where the group began, Next the next offset to handle.
	First, Next int64
	LeaderEpoch int32
	// RecordTime is the timestamp of the last record passed, the Unix epoch
	// where there was none.
	RecordTime, UpdatedAt time.Time
	// Records is how many records have passed.
	Records                                               int64
	DuplicatesProducer, DuplicatesRedelivery, DeadLetters int64
	// Rewound is how many offsets were passed and are not between First and Next
	// any more, or were passed again since: a rewind set them back, or an adopt
	// has left their topic.
	Rewound int64
	// Skipped is how many offsets a person has left out.
	Skipped int64
	// OpenDeadLetters is how many dead letters wait for a decision. DeadLetters
	// counts those that were discarded, too.
	OpenDeadLetters int64
	// ClusterID and TopicID tell the topic of the position from another one of
	// the same name.
	ClusterID string
	TopicID   [16]byte
}

// Identity is the topic of the position.
func (p Progress) Identity() Identity { return Identity{p.ClusterID, p.TopicID} }

// Applied returns how many records had their effect.
func (p Progress) Applied() int64 {
	return p.Records - p.DuplicatesProducer - p.DuplicatesRedelivery - p.DeadLetters
}

// Gaps returns how many offsets of the log held no record: compacted ones,
// transaction markers, aborted records. One that was read again counts again.
func (p Progress) Gaps() int64 { return p.Next - p.First + p.Rewound - p.Records - p.Skipped }

// Progress returns the account of every partition that the group has begun, by
// partition.
func (l *Ledger) Progress(ctx context.Context, db DB) ([]Progress, error) {
	rows, err := db.Query(ctx, l.sql.progress, l.group, l.topic)
	if err != nil {
		return nil, wrap("read the progress of "+l.topic, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Progress])
	return all, wrap("read the progress of "+l.topic, err)
}
