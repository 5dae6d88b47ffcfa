package offsets

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Claim is the right to advance one partition, for one epoch. It is a value:
// an advance answers with the claim that holds after its transaction has
// committed, and until then the old one must be kept.
type Claim struct {
	Partition int32
	// Epoch counts the claims of the partition; it is the fence.
	Epoch int64
	// Next is the next offset to handle.
	Next int64
	// LeaderEpoch is that of the record before Next, -1 where unknown.
	LeaderEpoch int32
}

// Refusal is a partition that was not claimed because the ledger's position
// belongs to another topic: one that was deleted and created again under the
// same name, or one of another cluster.
type Refusal struct {
	Partition    int32
	Stored, Seen Identity
	Next         int64
}

// Code is "topic_recreated" or "other_cluster".
func (r Refusal) Code() string {
	if r.Stored.ClusterID != r.Seen.ClusterID {
		return "other_cluster"
	}
	return "topic_recreated"
}

// Error says what differs.
func (r Refusal) Error() string {
	if r.Code() == "other_cluster" {
		return fmt.Sprintf("the stored offset %d belongs to cluster %q, but this is cluster %q", r.Next, r.Stored.ClusterID, r.Seen.ClusterID)
	}
	return fmt.Sprintf("the stored offset %d belongs to topic id %s, but the topic was deleted and created again as %s",
		r.Next, uuid.UUID(r.Stored.TopicID), uuid.UUID(r.Seen.TopicID))
}

// One statement, and never a select first: it waits for the transaction of the
// owner before, if one is open, and then sees what that has committed. A claim
// that had read the position before it took the lock would start behind its
// predecessor's last batch.
const sqlClaim = `
insert into $consumer_offset as o (consumer_group, topic, partition, cluster_id, topic_id, first_offset, next_offset, epoch, owner)
select $1, $2, a.partition, $3, $4, a.start, a.start, 1, $5
from unnest($6::int[], $7::bigint[]) as a (partition, start)
order by a.partition
on conflict (consumer_group, topic, partition) do update
set epoch = o.epoch + 1, owner = excluded.owner, state = 'open', reason = null, updated_at = now()
where o.topic_id = excluded.topic_id and o.cluster_id = excluded.cluster_id
returning o.partition, o.epoch, o.next_offset, o.leader_epoch`

const sqlIdentity = `
select partition, cluster_id, topic_id, next_offset
from $consumer_offset
where consumer_group = $1 and topic = $2 and partition = any ($3)
order by partition`

// Claim takes the partitions for owner: it raises their epochs, which fences
// whoever held them, and answers with the positions from which to go on. It
// waits for an open transaction of the owner before, at most for the session's
// lock_timeout (the error is then 55P03 and nothing was claimed). A partition
// whose stored position belongs to another topic is refused and left as it is.
func (l *Ledger) Claim(ctx context.Context, db DB, owner string, id Identity, partitions []Assigned) ([]Claim, []Refusal, error) {
	numbers, starts := split(partitions)
	rows, err := db.Query(ctx, l.sql.claim, l.group, l.topic, id.ClusterID, uuid.UUID(id.TopicID), owner, numbers, starts)
	if err != nil {
		return nil, nil, wrap(fmt.Sprintf("claim %s/%v", l.topic, numbers), err)
	}
	claims, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Claim])
	if err != nil || len(claims) == len(partitions) {
		return claims, nil, wrap(fmt.Sprintf("claim %s/%v", l.topic, numbers), err)
	}
	refusals, err := l.refusals(ctx, db, id, numbers, claims)
	return claims, refusals, wrap(fmt.Sprintf("claim %s/%v", l.topic, numbers), err)
}

func (l *Ledger) refusals(ctx context.Context, db DB, seen Identity, numbers []int32, claims []Claim) ([]Refusal, error) {
	claimed := make(map[int32]bool, len(claims))
	for _, c := range claims {
		claimed[c.Partition] = true
	}
	rows, err := db.Query(ctx, l.sql.identity, l.group, l.topic, numbers)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Refusal, error) {
		r := Refusal{Seen: seen}
		err := row.Scan(&r.Partition, &r.Stored.ClusterID, (*uuid.UUID)(&r.Stored.TopicID), &r.Next)
		return r, err
	})
	refused := all[:0]
	for _, r := range all {
		if !claimed[r.Partition] {
			refused = append(refused, r)
		}
	}
	return refused, err
}

const sqlReclaim = `
update $consumer_offset set epoch = epoch + 1, updated_at = now()
where consumer_group = $1 and topic = $2 and partition = $3 and epoch = $4
returning partition, epoch, next_offset, leader_epoch`

// Reclaim resolves a COMMIT that was never answered: on a fresh connection it
// takes the claim again, under the next epoch, if it is still ours. The update
// waits for the old transaction, should the server still be working on it, so
// the Next that comes back is the truth: it has moved if and only if the batch
// was committed. ErrFenced means that another worker has claimed the partition
// meanwhile, and the answer is theirs.
func (l *Ledger) Reclaim(ctx context.Context, db DB, c Claim) (Claim, error) {
	var next Claim
	err := db.QueryRow(ctx, l.sql.reclaim, l.group, l.topic, c.Partition, c.Epoch).
		Scan(&next.Partition, &next.Epoch, &next.Next, &next.LeaderEpoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, l.why(ctx, db, "reclaim", c)
	}
	if err != nil {
		return c, wrap("reclaim "+l.at(c.Partition, c.Next), err)
	}
	if next.Next < c.Next {
		return next, wrap("reclaim "+l.at(c.Partition, c.Next), fmt.Errorf("%w to offset %d", ErrWentBack, next.Next))
	}
	return next, nil
}

const sqlAdvance = `
update $consumer_offset
set next_offset = $6, leader_epoch = $7, record_time = coalesce($8, record_time), records = records + $9, updated_at = now()
where consumer_group = $1 and topic = $2 and partition = $3 and epoch = $4 and next_offset = $5`

const sqlLook = `select epoch, next_offset from $consumer_offset where consumer_group = $1 and topic = $2 and partition = $3`

// Advance moves the claim to a position. It must be the first statement of the
// batch's transaction: it is the fence and the lock in one. The row stays
// locked until the transaction ends, so two owners are never both inside a
// partition's effects, and a worker that was fenced learns it before it has
// done any work.
//
// The claim in the answer holds once the transaction has committed; until the
// caller knows that, the old one does. Errors: ErrFenced and ErrWentBack, in
// which case the transaction must be rolled back, and ErrNotMonotonic.
func (l *Ledger) Advance(ctx context.Context, tx pgx.Tx, c Claim, to Position) (Claim, error) {
	if to.Next <= c.Next {
		return c, wrap("advance "+l.at(c.Partition, c.Next), fmt.Errorf("%w (asked for %d)", ErrNotMonotonic, to.Next))
	}
	tag, err := tx.Exec(ctx, l.sql.advance, l.advanceArgs(c, to)...)
	if err != nil {
		return c, wrap("advance "+l.at(c.Partition, c.Next), err)
	}
	return l.advanced(ctx, tx, c, to, tag.RowsAffected())
}

func (l *Ledger) advanceArgs(c Claim, to Position) []any {
	var recordTime any
	if !to.Time.IsZero() {
		recordTime = to.Time
	}
	return []any{l.group, l.topic, c.Partition, c.Epoch, c.Next, to.Next, to.LeaderEpoch, recordTime, to.Records}
}

// advanced looks at the row count, which is what makes the advance a fence.
func (l *Ledger) advanced(ctx context.Context, tx pgx.Tx, c Claim, to Position, rows int64) (Claim, error) {
	if rows != 1 {
		return c, l.why(ctx, tx, "advance", c)
	}
	c.Next, c.LeaderEpoch = to.Next, to.LeaderEpoch
	return c, nil
}

// why looks at the row that did not match a claim and says what it means.
func (l *Ledger) why(ctx context.Context, db DB, operation string, c Claim) error {
	operation += " " + l.at(c.Partition, c.Next)
	var epoch, next int64
	err := db.QueryRow(ctx, l.sql.look, l.group, l.topic, c.Partition).Scan(&epoch, &next)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return wrap(operation, fmt.Errorf("%w: it does not know the partition", ErrWentBack))
	case err != nil:
		return wrap(operation, err)
	case epoch > c.Epoch:
		return wrap(operation, fmt.Errorf("%w: the partition was claimed under epoch %d, ours is %d", ErrFenced, epoch, c.Epoch))
	case epoch < c.Epoch || next < c.Next:
		return wrap(operation, fmt.Errorf("%w to epoch %d, offset %d; ours is epoch %d", ErrWentBack, epoch, next, c.Epoch))
	default:
		// The same epoch with a greater offset: after a failover two workers can
		// hold one epoch, and the other one was faster. The compare of the
		// offset has kept its effects from being doubled.
		return wrap(operation, fmt.Errorf("%w: another holder of epoch %d has advanced to %d", ErrFenced, epoch, next))
	}
}

const sqlRelease = `
update $consumer_offset o set owner = null, updated_at = now()
from unnest($3::int[], $4::bigint[]) as c (partition, epoch)
where o.consumer_group = $1 and o.topic = $2 and o.partition = c.partition and o.epoch = c.epoch`

// Release notes that the claims were let go. It is for people who look at the
// table: safety never asks for the owner.
func (l *Ledger) Release(ctx context.Context, db DB, claims []Claim) error {
	partitions, epochs := make([]int32, len(claims)), make([]int64, len(claims))
	for i, c := range claims {
		partitions[i], epochs[i] = c.Partition, c.Epoch
	}
	_, err := db.Exec(ctx, l.sql.release, l.group, l.topic, partitions, epochs)
	return wrap(fmt.Sprintf("release %s/%v", l.topic, partitions), err)
}

const sqlHalt = `
update $consumer_offset set state = 'halted', reason = $5, updated_at = now()
where consumer_group = $1 and topic = $2 and partition = $3 and epoch = $4`

// Halt notes why a partition was stopped, for a person to decide. The next
// claim opens it again. A claim that is no longer ours notes nothing.
func (l *Ledger) Halt(ctx context.Context, db DB, c Claim, reason string) error {
	_, err := db.Exec(ctx, l.sql.halt, l.group, l.topic, c.Partition, c.Epoch, reason)
	return wrap("halt "+l.at(c.Partition, c.Next), err)
}
