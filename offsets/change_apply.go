package offsets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Note says who changes something, and why; it is kept.
type Note struct {
	// By is who does it. Required.
	By string
	// Reason is why, for whoever asks later. Required.
	Reason string
}

func (n Note) check() error {
	switch {
	case strings.TrimSpace(n.Reason) == "":
		return errors.New("a reason is required: say why, for whoever asks later")
	case strings.TrimSpace(n.By) == "":
		return errors.New("it must be said who does it")
	}
	return nil
}

// sqlChange moves the position and writes down who did it, in one statement:
// neither is there without the other. The epoch is raised as by a claim, which
// fences the worker that holds the partition: what it has read, and may be about
// to write, is of the position before. It finds the new one when it claims again.
//
// A rewind below the beginning moves that, and reads again only what lay behind
// it. A position that is adopted begins anew, where the account of the topic that
// was left becomes what was set back.
const sqlChange = `
with change as (
  select * from unnest($3::int[], $4::text[], $5::bigint[], $6::text[], $7::uuid[]) as c (partition, action, target, cluster_id, topic_id)
), before as (
  select partition, next_offset, cluster_id, topic_id from $consumer_offset where consumer_group = $1 and topic = $2
), changed as (
  update $consumer_offset as o
  set epoch = o.epoch + 1, next_offset = c.target, leader_epoch = -1, state = 'open', reason = null, updated_at = now(),
    first_offset = case c.action when 'adopt' then c.target else least(o.first_offset, c.target) end,
    rewound = o.rewound + case c.action when 'skip' then 0 when 'adopt' then o.next_offset - o.first_offset
      else o.next_offset - greatest(o.first_offset, c.target) end,
    skipped = o.skipped + case c.action when 'skip' then c.target - o.next_offset else 0 end,
    cluster_id = coalesce(c.cluster_id, o.cluster_id), topic_id = coalesce(c.topic_id, o.topic_id)
  from change as c
  where o.consumer_group = $1 and o.topic = $2 and o.partition = c.partition
  returning o.partition, o.epoch
)
insert into $offset_change (consumer_group, topic, partition, action, old_offset, new_offset, epoch, reason, changed_by,
  old_cluster_id, old_topic_id, new_cluster_id, new_topic_id)
select $1, $2, partition, c.action, b.next_offset, c.target, o.epoch, $8, $9,
  case c.action when 'adopt' then b.cluster_id end, case c.action when 'adopt' then b.topic_id end, c.cluster_id, c.topic_id
from changed as o join change as c using (partition) join before as b using (partition)
order by partition
returning partition, epoch`

// Apply does the changes, all or none, and answers with what it did, by
// partition; Epoch is the one from then on. It looks at everything again that
// Plan has looked at, with the rows locked, so that a position which the
// processor has moved meanwhile is never set by what was true before: that is a
// [*RefusedChange], and nothing is changed.
//
// It waits for the batches in work, at most for the time given to each row or,
// where that is 0, for the session's lock_timeout; the error is then SQLSTATE
// 55P03. The workers of the partitions go on at their new positions by
// themselves. Where the answer is lost, Changes tells whether it was done.
func (l *Ledger) Apply(ctx context.Context, db DB, changes []Change, note Note, wait time.Duration) ([]Planned, error) {
	operation := "change " + l.topic
	if err := note.check(); err != nil {
		return nil, wrap(operation, err)
	}
	var plan []Planned
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) (err error) {
		plan, err = l.apply(ctx, tx, changes, note, wait)
		return err
	})
	if err != nil {
		return nil, wrap(operation, err)
	}
	return plan, nil
}

func (l *Ledger) apply(ctx context.Context, tx pgx.Tx, changes []Change, note Note, wait time.Duration) ([]Planned, error) {
	if wait > 0 {
		if _, err := tx.Exec(ctx, sqlPatience, fmt.Sprintf("%dms", max(1, wait.Milliseconds()))); err != nil {
			return nil, err
		}
	}
	plan, err := l.plan(ctx, tx, l.sql.standingLocked, changes)
	if err != nil {
		return nil, err
	}
	var refusals []error
	for _, p := range plan {
		refusals = append(refusals, p.Refusal)
	}
	if err := errors.Join(refusals...); err != nil {
		return nil, err
	}
	return plan, l.write(ctx, tx, plan, note)
}

const sqlPatience = `select set_config('lock_timeout', $1, true)`

// write sends sqlChange, and the epochs that it answers go into the plan.
func (l *Ledger) write(ctx context.Context, tx pgx.Tx, plan []Planned, note Note) error {
	n := len(plan)
	partitions, actions, targets := make([]int32, n), make([]string, n), make([]int64, n)
	clusters, topics := make([]*string, n), make([]*uuid.UUID, n)
	for i := range plan {
		p := &plan[i]
		partitions[i], actions[i], targets[i] = p.Partition, string(p.Action), p.To
		if p.Action == Adopt {
			clusters[i], topics[i] = &p.Identity.ClusterID, (*uuid.UUID)(&p.Identity.TopicID)
		}
	}
	rows, err := tx.Query(ctx, l.sql.change, l.group, l.topic, partitions, actions, targets, clusters, topics, storable(note.Reason), storable(note.By))
	if err != nil {
		return err
	}
	changed := 0
	var partition int32
	var epoch int64
	_, err = pgx.ForEachRow(rows, []any{&partition, &epoch}, func() error {
		for i := range plan {
			if plan[i].Partition == partition {
				plan[i].Epoch = epoch
			}
		}
		changed++
		return nil
	})
	if err == nil && changed != n {
		err = fmt.Errorf("%d of %d partitions were changed", changed, n)
	}
	return err
}
