package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/offsets"
)

// commitUnknownError is COMMIT without an answer.
type commitUnknownError struct{ err error }

func (e *commitUnknownError) Error() string { return "the answer to COMMIT was lost: " + e.err.Error() }
func (e *commitUnknownError) Unwrap() error { return e.err }

// transactor runs batch transactions.
type transactor struct {
	pool   *pgxpool.Pool
	slots  chan struct{} // as many as transactions may run at once
	ledger *offsets.Ledger
	policy Policy
	hears  bool // of duplicates
	// guardedBy is the pipeline's.
	guardedBy Guard
	hooks     Hooks
	log       *slog.Logger
	topic     string
	limit     time.Duration
	// guard, if set, looks at what the transaction has done, before COMMIT; its
	// error rolls it back.
	guard func(ctx context.Context, tx pgx.Tx) error
}

// transact is THE transaction: the advance, the keys, the effects, what was set
// aside, and COMMIT.
//
// The answer is the claim to go on with. An error of type *commitUnknownError
// means that the batch may or may not be committed; with every other error it
// has left nothing. In both cases the old claim is returned.
//
// The order matters. The advance is the first statement, so a worker that was
// fenced learns it before it has touched a key or an effect, and the row's lock
// keeps a second owner out until this transaction has ended. The claim moves
// only after COMMIT has answered.
//
// A batch whose keys or rows are contested is tried a second time, at once and
// with the same claim, by the careful way: see contention.go.
func (t *transactor) transact(ctx context.Context, c offsets.Claim, b *batch, h *history) (offsets.Claim, error) {
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return c, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	a := t.newAttempt(c, b, h)
	a.insert = h.contention.insert()
	a.careful = b.refused || b.isolate || h.sifting.begin || h.rows.insert()
	next, err := a.once(ctx, c)
	keys, rows := a.contested(err)
	if !keys && !rows {
		return next, err
	}
	again := t.newAttempt(c, b, h)
	again.insert, again.careful, again.info.Contested = a.insert || keys, true, true
	return again.once(ctx, c)
}

func (t *transactor) newAttempt(c offsets.Claim, b *batch, h *history) *attempt {
	return &attempt{transactor: t, batch: b, history: h, info: BatchInfo{
		Topic: t.topic, Partition: c.Partition, Epoch: c.Epoch, From: c.Next, To: b.to.Next, Records: int(b.to.Records),
	}}
}

// once tries the transaction and tells what became of it.
func (a *attempt) once(ctx context.Context, c offsets.Claim) (offsets.Claim, error) {
	a.info.Inserted = a.insert
	started := time.Now()
	next, err := a.run(ctx, c)
	a.info.Elapsed = time.Since(started)
	switch {
	case err == nil:
		a.learn()
		a.announce(ctx)
		call(a.hooks.Committed, a.info)
		return next, nil
	case errors.As(err, new(*commitUnknownError)):
		a.history.unknown = a // which learns if it is found committed
		call2(a.hooks.CommitUnknown, a.info, err)
	default:
		call2(a.hooks.RolledBack, a.info, err)
	}
	return c, err
}

func (a *attempt) run(ctx context.Context, c offsets.Claim) (offsets.Claim, error) {
	a.step(StepBegin)
	tx, err := a.pool.Begin(ctx)
	if err != nil {
		return c, fmt.Errorf("begin: %w", err)
	}
	next, err := a.effects(ctx, tx, c)
	if err == nil && a.guard != nil {
		err = a.guard(ctx, tx)
	}
	if err != nil {
		// The connection may be gone, and the server rolls back by itself when
		// it is: only the first error says something, and no answer is waited
		// for longer than a new connection is.
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		_ = tx.Rollback(undo)
		return c, err
	}
	a.step(StepCommit)
	if err := commitOutcome(tx.Commit(ctx)); err != nil {
		return c, err
	}
	a.step(StepPublish)
	return next, nil
}

// effects writes all that the transaction holds.
func (a *attempt) effects(ctx context.Context, tx pgx.Tx, c offsets.Claim) (offsets.Claim, error) {
	a.step(StepAdmit)
	next, admissions, err := a.admit(ctx, tx, c)
	if err != nil {
		return c, err
	}
	fresh, err := a.judge(admissions)
	if err != nil {
		return c, err
	}
	a.step(StepApply)
	if err := a.apply(ctx, tx, fresh); err != nil {
		return c, fmt.Errorf("apply: %w", err)
	}
	if f := a.early(a.batch, a.aside); f != nil {
		return c, f
	}
	if err := a.tell(ctx, tx, admissions); err != nil {
		return c, fmt.Errorf("on duplicate: %w", err)
	}
	return next, a.close(ctx, tx, next)
}

func (a *attempt) step(s Step) { call2(a.hooks.Step, s, a.info) }

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
