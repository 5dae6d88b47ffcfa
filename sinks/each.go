package sinks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// Each returns the sink that calls fn for each message in the order of the
// batch, with the transaction. fn must not keep m, must make no call outside of
// tx, and must be able to run again.
//
// An error with a method `Permanent() bool` that answers true is the message's
// own fault with reason [schema.ReasonHandler], and so is a panic; the engine
// then sets the message aside or stops, as it is set. Any other error is
// returned with the record's position, for the transaction to be tried again.
func Each[T any](fn func(ctx context.Context, tx pgx.Tx, m schema.Message[T]) error) Sink[T] {
	return eachSink[T]{fn}
}

// Batch returns the sink that calls fn once with the whole batch. An error is
// returned as it is: fn says which message is at fault by a [*schema.Fault]
// with its Record. A batch without messages does not call fn.
func Batch[T any](fn func(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error) Sink[T] {
	return batchSink[T]{fn}
}

type eachSink[T any] struct {
	fn func(context.Context, pgx.Tx, schema.Message[T]) error
}

func (s eachSink[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	for i := range batch {
		if err := s.call(ctx, tx, batch[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s eachSink[T]) call(ctx context.Context, tx pgx.Tx, m schema.Message[T]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = schema.Faultf(m.Record, schema.ReasonHandler, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	err = s.fn(ctx, tx, m)
	if err == nil {
		return nil
	}
	if permanent, ok := errors.AsType[interface {
		error
		Permanent() bool
	}](err); ok && permanent.Permanent() {
		return schema.AsFault(err, m.Record, schema.ReasonHandler)
	}
	return fmt.Errorf("sinks: %s: %w", m.Position(), err)
}

type batchSink[T any] struct {
	fn func(context.Context, pgx.Tx, []schema.Message[T]) error
}

func (s batchSink[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	if len(batch) == 0 {
		return nil
	}
	return s.fn(ctx, tx, batch)
}
