package sinkstest

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/oncestream/oncestream/schema"
)

// failsClosed applies a batch to a transaction that is dead: there must be an
// error and no effect.
func (b *bench[T]) failsClosed(ctx context.Context, tx pgx.Tx, why string) error {
	before := b.effects()
	if b.sink.Apply(ctx, tx, b.messages(0, size)) == nil {
		return fmt.Errorf("no error, although %s", why)
	}
	_ = tx.Commit(ctx) // whatever it answers, nothing may be there
	return b.unchanged(before, why)
}

// aborted proves that in a transaction which PostgreSQL has aborted (25P02) the
// sink reports an error.
func aborted[T any](ctx context.Context, b *bench[T]) error {
	return b.rolledBack(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select 1 / $1::int`, 0); err == nil {
			return errors.New("the division by zero was no error")
		}
		return b.failsClosed(ctx, tx, "the transaction was aborted")
	})
}

// ended proves that the sink does not go on after the end of its transaction,
// where each statement would commit by itself.
func ended[T any](ctx context.Context, b *bench[T]) error {
	return b.rolledBack(ctx, func(tx pgx.Tx) error {
		if err := tx.Rollback(ctx); err != nil {
			return err
		}
		return b.failsClosed(ctx, tx, "the transaction had ended")
	})
}

// lost proves that the sink reports a connection that is gone.
func lost[T any](ctx context.Context, b *bench[T]) error {
	tx, err := b.db.Pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // it fails, and releases the connection
	if err := tx.Conn().Close(ctx); err != nil {
		return err
	}
	return b.failsClosed(ctx, tx, "the connection was closed")
}

// traced applies a batch and returns the statements of Apply alone.
func (b *bench[T]) traced(ctx context.Context, batch []schema.Message[T]) (seen []statement, conn *pgx.Conn, err error) {
	err = b.rolledBack(ctx, func(tx pgx.Tx) (err error) {
		conn = tx.Conn()
		seen, err = b.trace.during(func() error { return b.sink.Apply(ctx, tx, batch) })
		return err
	})
	return seen, conn, err
}

// inside proves that each statement of the pool goes through the transaction,
// and that the transaction is left open.
func inside[T any](ctx context.Context, b *bench[T]) error {
	seen, conn, err := b.traced(ctx, b.messages(0, size))
	if err != nil {
		return err
	}
	if len(seen) == 0 {
		return errors.New("the messages made no statement")
	}
	return outside(seen, conn)
}

// empty proves that a batch without messages asks nothing of the database.
func empty[T any](ctx context.Context, b *bench[T]) error {
	seen, _, err := b.traced(ctx, nil)
	if err == nil && len(seen) > 0 {
		err = fmt.Errorf("a statement for no message:\n%s", indent(seen[0].sql))
	}
	return err
}

// statements proves that a batch of 1,000 messages costs as many statements as
// a batch of 1.
func statements[T any](ctx context.Context, b *bench[T]) error {
	if b.PerMessage {
		return nil
	}
	one, _, err := b.traced(ctx, b.messages(0, 1))
	if err != nil {
		return err
	}
	many, _, err := b.traced(ctx, b.messages(0, 1000))
	if err == nil && len(one) != len(many) {
		err = fmt.Errorf("%d statements for 1 message, %d for 1,000", len(one), len(many))
	}
	return err
}

// concurrent proves that one sink serves several workers, whose messages meet
// in no row, with the effects of one worker.
func concurrent[T any](ctx context.Context, b *bench[T]) error {
	const rows, rounds = 4, 5
	work := func(row, round int) error {
		var batch []schema.Message[T]
		for i := range size {
			batch = append(batch, b.Message((round*size+i)*rows+row))
		}
		return b.apply(ctx, batch)
	}
	for n := range rows * rounds {
		if err := work(n/rounds, n%rounds); err != nil {
			return err
		}
	}
	alone := b.effects()
	if err := b.restart(ctx); err != nil {
		return err
	}
	if err := everyWorker(rows, rounds, work); err != nil {
		return err
	}
	return b.unchanged(alone, "several workers at once; this is what came of one worker")
}

// everyWorker waits for the goroutines it starts, one for each row.
func everyWorker(rows, rounds int, work func(row, round int) error) error {
	var workers errgroup.Group
	for row := range rows {
		workers.Go(func() error {
			for round := range rounds {
				if err := work(row, round); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return workers.Wait()
}

// prepareAgain proves that Prepare may be called again while batches are
// applied, and that the sink goes on afterwards.
func prepareAgain[T any](ctx context.Context, b *bench[T]) error {
	var both errgroup.Group
	both.Go(func() error {
		for range 10 {
			if err := b.prepare(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	both.Go(func() error {
		for i := range 10 {
			if err := b.apply(ctx, b.messages(i*size, (i+1)*size)); err != nil {
				return err
			}
		}
		return nil
	})
	return both.Wait()
}
