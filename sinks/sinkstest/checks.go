package sinkstest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// size is how many messages most tests use: enough for several of each row.
const size = 24

// twice proves that a batch which comes again has no second effect: by itself
// where the sink says so, else behind the keys of the messages.
func twice[T any](ctx context.Context, b *bench[T]) error {
	apply := b.apply
	if !b.Idempotent {
		b.db.Exec(`create table sinkstest_key (record_offset bigint primary key)`)
		apply = b.applyFresh
	}
	before := b.effects()
	if err := apply(ctx, b.messages(0, size)); err != nil {
		return err
	}
	if err := b.changed(before); err != nil {
		return err
	}
	once := b.effects()
	if err := apply(ctx, b.messages(0, size)); err != nil {
		return fmt.Errorf("the second time: %w", err)
	}
	return b.unchanged(once, "the second time")
}

// applyFresh applies the messages whose key is new, as the engine does.
func (b *bench[T]) applyFresh(ctx context.Context, batch []schema.Message[T]) error {
	return pgx.BeginFunc(ctx, b.db.Pool, func(tx pgx.Tx) error {
		var fresh []schema.Message[T]
		for _, m := range batch {
			tag, err := tx.Exec(ctx, `insert into sinkstest_key values ($1) on conflict do nothing`, m.Offset)
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 1 {
				fresh = append(fresh, m)
			}
		}
		return b.sink.Apply(ctx, tx, fresh)
	})
}

// rollback proves that a transaction which is rolled back leaves nothing.
func rollback[T any](ctx context.Context, b *bench[T]) error {
	before := b.effects()
	if err := b.applyAndRollBack(ctx, b.messages(0, size)); err != nil {
		return err
	}
	return b.unchanged(before, "a rollback")
}

func (b *bench[T]) applyAndRollBack(ctx context.Context, batch []schema.Message[T]) error {
	return b.rolledBack(ctx, func(tx pgx.Tx) error { return b.sink.Apply(ctx, tx, batch) })
}

// rolledBack runs f in a transaction that is rolled back, also where f panics:
// a transaction that is left open would keep the pool from closing.
func (b *bench[T]) rolledBack(ctx context.Context, f func(tx pgx.Tx) error) (err error) {
	tx, err := b.db.Pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if e := tx.Rollback(ctx); err == nil && !errors.Is(e, pgx.ErrTxClosed) {
			err = e
		}
	}()
	return f(tx)
}

// again proves that a batch which was rolled back can be applied again, by the
// same sink, with the effects of a first time, and that Apply changes no message.
func again[T any](ctx context.Context, b *bench[T]) error {
	batch := b.messages(0, size)
	for range 2 {
		if err := b.applyAndRollBack(ctx, batch); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(batch, b.messages(0, size)) {
		return errors.New("the sink changed its messages")
	}
	if err := b.apply(ctx, batch); err != nil {
		return err
	}
	tried := b.effects()
	b.sink = b.New()
	if err := b.restart(ctx); err != nil {
		return err
	}
	if err := b.apply(ctx, batch); err != nil {
		return err
	}
	return b.unchanged(tried, "a first time; this is what came of it after two rollbacks")
}

// cut proves that the effects are those of the log, in its order, however the
// engine cuts it into batches.
func cut[T any](ctx context.Context, b *bench[T]) error {
	if err := b.apply(ctx, b.messages(0, size)); err != nil {
		return err
	}
	whole := b.effects()
	if err := b.restart(ctx); err != nil {
		return err
	}
	for i := range size {
		if err := b.apply(ctx, b.messages(i, i+1)); err != nil {
			return fmt.Errorf("message %d alone: %w", i, err)
		}
	}
	return b.unchanged(whole, "one message a batch; this is what came of one batch")
}

// bad proves that a message which cannot be handled is named by a fault, so
// that the engine need not search, and that the batch has no effect.
func bad[T any](ctx context.Context, b *bench[T]) error {
	if b.Bad == nil {
		return nil
	}
	before := b.effects()
	batch := b.messages(0, size)
	batch[size/2] = b.Bad(size / 2)
	err := b.apply(ctx, batch)
	f, ok := errors.AsType[*schema.Fault](err)
	if !ok {
		return fmt.Errorf("want a *schema.Fault, got %w", err)
	}
	if f.Record != batch[size/2].Record {
		return fmt.Errorf("the fault names %v, not the record %s", f.Record, batch[size/2].Position())
	}
	return b.unchanged(before, "a bad message")
}

// allBad proves that the bad messages of a batch are named together, so that the
// engine applies the others with the next run.
func allBad[T any](ctx context.Context, b *bench[T]) error {
	if b.Bad == nil || !b.AllFaults {
		return nil
	}
	before := b.effects()
	batch := b.messages(0, size)
	var want []string
	for _, i := range []int{0, size / 2, size - 1} {
		batch[i] = b.Bad(i)
		want = append(want, batch[i].Position())
	}
	err := b.apply(ctx, batch)
	faults, ok := errors.AsType[schema.Faults](err)
	if !ok {
		return fmt.Errorf("want schema.Faults, got %w", err)
	}
	var got []string
	for _, f := range faults {
		if f.Record == nil {
			return fmt.Errorf("a fault without its record: %w", f)
		}
		got = append(got, f.Record.Position())
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the faults name %v, want %v", got, want)
	}
	return b.unchanged(before, "bad messages")
}

// reporter is what package processor asks for as its Reporter.
type reporter[T any] interface {
	ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]schema.Outcome, error)
}

// report proves that a sink which reports has the effects of Apply, and answers
// with an outcome for each message or with none.
func report[T any](ctx context.Context, b *bench[T]) error {
	r, ok := b.sink.(reporter[T])
	if !ok {
		return nil
	}
	if err := b.apply(ctx, b.messages(0, size)); err != nil {
		return err
	}
	applied := b.effects()
	if err := b.restart(ctx); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, b.db.Pool, func(tx pgx.Tx) error {
		outcomes, err := r.ApplyReport(ctx, tx, b.messages(0, size))
		if err == nil && len(outcomes) != 0 && len(outcomes) != size {
			err = fmt.Errorf("%d outcomes for %d messages", len(outcomes), size)
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.unchanged(applied, "ApplyReport; this is what came of Apply")
}
