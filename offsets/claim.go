package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// sqlClaim is one statement, and never a select first: it waits for the transaction of the
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

// Claim takes the partitions for owner: it raises their epochs, which fences
// whoever held them, and answers with the positions from which to go on. It
// waits for an open transaction of the owner before, at most for the session's
// lock_timeout (the error is then SQLSTATE 55P03 and nothing was claimed). A
// partition whose stored position belongs to another topic is refused and left
// as it is. Each partition may be named once.
//
// If the answer is lost, claim again: the lost claim is fenced by the new one.
func (l *Ledger) Claim(ctx context.Context, db DB, owner string, id Identity, partitions []Assigned) ([]Claim, []Refusal, error) {
	numbers, starts := split(partitions)
	operation := fmt.Sprintf("claim %s/%v for %s", l.topic, numbers, owner)
	rows, err := db.Query(ctx, l.sql.claim, l.group, l.topic, id.ClusterID, uuid.UUID(id.TopicID), owner, numbers, starts)
	if err != nil {
		return nil, nil, wrap(operation, err)
	}
	claims, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Claim])
	if err != nil || len(claims) == len(partitions) {
		return claims, nil, wrap(operation, err)
	}
	refusals, err := l.refusals(ctx, db, id, numbers, claims)
	return claims, refusals, wrap(operation, err)
}

const sqlReclaim = `
update $consumer_offset set epoch = epoch + 1, updated_at = now()
where consumer_group = $1 and topic = $2 and partition = $3 and epoch = $4
returning partition, epoch, next_offset, leader_epoch`

// Reclaim resolves a COMMIT that was never answered: on a fresh connection it
// takes the claim again, under the next epoch, if it is still ours. The update
// waits for the old transaction, should the server still be working on it, so
// the Next that comes back is the truth: it has moved if and only if the batch
// was committed. (A third offset means that another holder of our epoch was
// there, which takes a failover: then the batch is not ours to repeat.)
//
// ErrFenced means that another worker has claimed the partition meanwhile, and
// the answer is theirs. A Reclaim whose own answer was lost looks the same the
// next time, as its epoch is one that we never learned of. With ErrWentBack the
// row may be taken already. In all these cases claim again.
func (l *Ledger) Reclaim(ctx context.Context, db DB, c Claim) (Claim, error) {
	operation := "reclaim " + l.at(c.Partition, c.Next)
	rows, err := db.Query(ctx, l.sql.reclaim, l.group, l.topic, c.Partition, c.Epoch)
	if err != nil {
		return c, wrap(operation, err)
	}
	next, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Claim])
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return c, l.why(ctx, db, operation, c)
	case err != nil:
		return c, wrap(operation, err)
	case next.Next < c.Next:
		return next, wrap(operation, wentBack(next.Epoch, next.Next, c))
	}
	return next, nil
}

// Position is how far an advance goes.
type Position struct {
	// Next is one past the last offset passed.
	Next int64
	// LeaderEpoch is that of the last record passed, -1 where unknown.
	LeaderEpoch int32
	// Time is the timestamp of the last record passed, zero where none. One
	// outside the years 1 to 9999 is not stored.
	Time time.Time
	// Records is how many records are passed. Gaps of the log (compaction,
	// transaction markers, aborted records) are not records.
	Records int64
}

const sqlAdvance = `
update $consumer_offset
set next_offset = $6, leader_epoch = $7, record_time = coalesce($8, record_time), records = records + $9, updated_at = now()
where consumer_group = $1 and topic = $2 and partition = $3 and epoch = $4 and next_offset = $5`

const sqlLook = `
select epoch, next_offset
from $consumer_offset
where consumer_group = $1 and topic = $2 and partition = $3`

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

// advanceArgs leaves out a time that is none. A producer that counts in
// microseconds puts its records into the year 55000: the column cannot hold
// that, and the error would be the batch's, which no isolation of a message
// could get past.
func (l *Ledger) advanceArgs(c Claim, to Position) []any {
	var recordTime *time.Time
	if year := to.Time.Year(); !to.Time.IsZero() && year >= 1 && year <= 9999 {
		recordTime = &to.Time
	}
	return []any{l.group, l.topic, c.Partition, c.Epoch, c.Next, to.Next, to.LeaderEpoch, recordTime, to.Records}
}

// advanced looks at the row count, which is what makes the advance a fence.
func (l *Ledger) advanced(ctx context.Context, tx pgx.Tx, c Claim, to Position, rows int64) (Claim, error) {
	if rows != 1 {
		return c, l.why(ctx, tx, "advance "+l.at(c.Partition, c.Next), c)
	}
	c.Next, c.LeaderEpoch = to.Next, to.LeaderEpoch
	return c, nil
}

// why looks at the row that did not match a claim and says what it means. The
// row may have changed again before it is looked at: what it says then is still
// true, because only the claim that matched could have stayed ours.
func (l *Ledger) why(ctx context.Context, db DB, operation string, c Claim) error {
	var epoch, next int64
	err := db.QueryRow(ctx, l.sql.look, l.group, l.topic, c.Partition).Scan(&epoch, &next)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = unknown(c)
	case err != nil:
	case epoch > c.Epoch:
		err = fenced(epoch, next, c)
	case epoch < c.Epoch || next < c.Next:
		err = wentBack(epoch, next, c)
	default:
		// The same epoch with a greater offset: after a failover two workers can
		// hold one epoch, and the other one was faster. The compare of the
		// offset has kept its effects from being doubled.
		err = fmt.Errorf("%w: another holder of epoch %d, which is ours too, has advanced to %d; %s", ErrFenced, epoch, next, letGo)
	}
	return wrap(operation, err)
}

func wentBack(epoch, next int64, c Claim) error {
	return fmt.Errorf("%w to epoch %d, offset %d, ours is epoch %d, offset %d; %s", ErrWentBack, epoch, next, c.Epoch, c.Next, startAnew)
}

// What a caller does about it.
const (
	letGo     = "roll back, drop what was fetched, and claim again only while the partition is assigned"
	startAnew = "roll back, drop what was fetched, claim again and fetch from the offset that the claim names"
)
