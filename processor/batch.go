package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// batch is what one transaction handles: decoded messages of one partition in
// the order of their offsets, and the position behind them. A batch may hold no
// message and still move the position, over gaps and transaction markers.
type batch struct {
	records  []*schema.Record
	entries  []offsets.Entry
	messages messages
	// first is the place of records[0] in messages, which halves share.
	first int
	to    offsets.Position
	// fault is that of the record which follows the batch, nil where none.
	fault *schema.Fault
}

// newBatch decodes chunks into a batch. It ends before the first record that
// cannot be decoded or keyed.
func newBatch(ctx context.Context, d decoder, chunks []chunk) *batch {
	b := &batch{}
	for i := range chunks {
		d.decode(ctx, b, chunks[i].records)
		if b.fault != nil {
			b.endBefore(b.fault.Record)
			return b
		}
		b.to = offsets.Position{Next: chunks[i].end, LeaderEpoch: chunks[i].leaderEpoch}
	}
	b.setTime()
	return b
}

// endBefore sets the position to the record at fault, which is not passed.
func (b *batch) endBefore(r *schema.Record) {
	b.to = offsets.Position{Next: r.Offset, LeaderEpoch: -1}
	if n := len(b.records); n > 0 {
		b.to.LeaderEpoch = b.records[n-1].LeaderEpoch
	}
	b.setTime()
}

func (b *batch) setTime() {
	b.to.Records = int64(len(b.records))
	if n := len(b.records); n > 0 {
		b.to.Time = b.records[n-1].Time
	}
}

// split cuts the batch in two before its record at place n.
func (b *batch) split(n int) (head, tail *batch) {
	h, t := *b, *b
	h.records, h.entries = b.records[:n], b.entries[:n]
	t.records, t.entries = b.records[n:], b.entries[n:]
	t.first = b.first + n
	h.fault = nil
	h.endBefore(t.records[0])
	t.setTime()
	return &h, &t
}

// place returns where the record stands in the batch, or -1.
func (b *batch) place(r *schema.Record) int {
	for i := range b.records {
		if b.records[i] == r {
			return i
		}
	}
	return -1
}

// commitUnknownError is COMMIT without an answer.
type commitUnknownError struct{ err error }

func (e *commitUnknownError) Error() string { return "the answer to COMMIT was lost: " + e.err.Error() }
func (e *commitUnknownError) Unwrap() error { return e.err }

// transactor runs batch transactions.
type transactor struct {
	pool   *pgxpool.Pool
	slots  chan struct{} // as many as transactions may run at once
	ledger *offsets.Ledger
	hooks  Hooks
	topic  string
	limit  time.Duration
}

// transact is THE transaction: the advance, the keys, the effects and COMMIT.
//
// The answer is the claim to go on with. An error of type *commitUnknownError
// means that the batch may or may not be committed; with every other error it
// has left nothing. In both cases the old claim is returned.
//
// The order matters. The advance is the first statement, so a worker that was
// fenced learns it before it has touched a key or an effect, and the row's lock
// keeps a second owner out until this transaction has ended. The claim moves
// only after COMMIT has answered.
func (t *transactor) transact(ctx context.Context, c offsets.Claim, b *batch) (offsets.Claim, error) {
	info := BatchInfo{Topic: t.topic, Partition: c.Partition, Epoch: c.Epoch, From: c.Next, To: b.to.Next, Records: len(b.records)}
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return c, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	started := time.Now()
	next, err := t.attempt(ctx, c, b, &info)
	info.Elapsed = time.Since(started)
	switch {
	case err == nil:
		call(t.hooks.Committed, info)
		return next, nil
	case errors.As(err, new(*commitUnknownError)):
		call2(t.hooks.CommitUnknown, info, err)
	default:
		call2(t.hooks.RolledBack, info, err)
	}
	return c, err
}

func (t *transactor) attempt(ctx context.Context, c offsets.Claim, b *batch, info *BatchInfo) (offsets.Claim, error) {
	t.step(StepBegin, info)
	tx, err := t.pool.Begin(ctx)
	if err != nil {
		return c, fmt.Errorf("begin: %w", err)
	}
	next, err := t.effects(ctx, tx, c, b, info)
	if err != nil {
		// The connection may be gone, and the server rolls back by itself when
		// it is: only the first error says something.
		_ = tx.Rollback(context.WithoutCancel(ctx))
		return c, err
	}
	t.step(StepCommit, info)
	if err := commitOutcome(tx.Commit(ctx)); err != nil {
		return c, err
	}
	t.step(StepPublish, info)
	return next, nil
}

// effects writes all that the transaction holds.
func (t *transactor) effects(ctx context.Context, tx pgx.Tx, c offsets.Claim, b *batch, info *BatchInfo) (offsets.Claim, error) {
	t.step(StepAdmit, info)
	next, admissions, err := t.ledger.AdvanceAndAdmit(ctx, tx, c, b.to, b.entries)
	if err != nil {
		return c, err
	}
	fresh, fault := b.fresh(admissions)
	if fault != nil {
		return c, fault
	}
	n := offsets.Count(admissions)
	info.Fresh, info.DuplicatesProducer, info.DuplicatesRedelivered = int(n.Fresh), int(n.Producer), int(n.Redelivery)
	t.step(StepApply, info)
	if len(fresh) > 0 {
		if err := b.messages.apply(ctx, ownedTx{tx}, fresh); err != nil {
			return c, fmt.Errorf("apply: %w", err)
		}
	}
	return next, t.ledger.Account(ctx, tx, next, n)
}

// fresh returns the places, in messages, of those whose key is new. A key that
// was used before for another payload is the message's own fault.
func (b *batch) fresh(admissions []offsets.Admission) ([]int, *schema.Fault) {
	places := make([]int, 0, len(admissions))
	for i := range admissions {
		switch a := &admissions[i]; a.Outcome {
		case offsets.Fresh:
			places = append(places, b.first+i)
		case offsets.Conflict:
			return nil, b.conflict(i, a)
		case offsets.Duplicate:
		}
	}
	return places, nil
}

// conflict is the fault of record i, whose key was used before.
func (b *batch) conflict(i int, a *offsets.Admission) *schema.Fault {
	r := b.records[i]
	return schema.Faultf(r, schema.ReasonKeyReuse, "the key was used at %s/%d@%d for another payload", r.Topic, a.First.Partition, a.First.Offset)
}

func (t *transactor) step(s Step, info *BatchInfo) { call2(t.hooks.Step, s, *info) }

// call and call2 call a hook if there is one.
func call[A any](hook func(A), a A) {
	if hook != nil {
		hook(a)
	}
}

func call2[A, B any](hook func(A, B), a A, b B) {
	if hook != nil {
		hook(a, b)
	}
}
