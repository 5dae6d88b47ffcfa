package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
// The first error ends the batch; see [EachSink.Savepoints].
func Each[T any](fn func(ctx context.Context, tx pgx.Tx, m schema.Message[T]) error) *EachSink[T] {
	return &EachSink[T]{fn: func(ctx context.Context, tx pgx.Tx, m schema.Message[T]) (any, error) {
		return nil, fn(ctx, tx, m)
	}}
}

// EachResult is [Each] for a function that answers. The answer, written as JSON
// by encoding/json, is kept beside the message's key, and a duplicate of the
// message is given it. A nil answer keeps nothing; json.RawMessage is kept as it
// is. An answer that is no JSON is the message's own fault.
func EachResult[T any](fn func(ctx context.Context, tx pgx.Tx, m schema.Message[T]) (any, error)) *EachSink[T] {
	return &EachSink[T]{fn: fn}
}

// EachSink is what [Each] and [EachResult] return.
type EachSink[T any] struct {
	fn         func(context.Context, pgx.Tx, schema.Message[T]) (any, error)
	savepoints bool
}

// Savepoints returns the sink that makes each call under a savepoint of its own.
// A call that fails by its message's own fault is undone alone and the others go
// on, so that the faults of the whole batch are found in one run; the batch then
// fails with all of them. What PostgreSQL refuses of a call's values (SQLSTATE
// classes 22 and 23) is the message's own fault too: without savepoints the
// engine has to search for the message.
//
// The cost is two more round trips for each message. Above 64 messages in a
// batch that write, PostgreSQL also has to look up subtransactions on disk pages
// (pg_subtrans), which slows down the snapshots of all sessions while the
// transaction is open: keep batches small. A constraint that is deferred is not
// checked at the savepoint.
func (s *EachSink[T]) Savepoints() *EachSink[T] { return &EachSink[T]{fn: s.fn, savepoints: true} }

// Apply implements [Sink].
func (s *EachSink[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	_, err := s.ApplyReport(ctx, tx, batch)
	return err
}

// ApplyReport applies the batch and returns the results, or none where no call
// has answered.
func (s *EachSink[T]) ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]schema.Outcome, error) {
	results := outcomes{size: len(batch)}
	one := func(i int, m *schema.Message[T]) error {
		result, err := s.run(ctx, tx, m)
		if err == nil && result != nil {
			results.at(i).Result = result
		}
		return err
	}
	if s.savepoints {
		if err := gather(batch, one); err != nil {
			return nil, err
		}
		return results.list, nil
	}
	for i := range batch {
		if err := one(i, &batch[i]); err != nil {
			return nil, err
		}
	}
	return results.list, nil
}

// run makes one call, under a savepoint where that is set.
func (s *EachSink[T]) run(ctx context.Context, tx pgx.Tx, m *schema.Message[T]) (result []byte, err error) {
	if !s.savepoints {
		return s.call(ctx, tx, m)
	}
	err = pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) (err error) {
		result, err = s.call(ctx, savepoint, m)
		return err
	})
	server, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || schema.IsUnavailable(err) {
		return result, err
	}
	if _, ok := errors.AsType[*schema.Fault](err); ok {
		return nil, err
	}
	if reason := reasonOf(server.Code); reason != "" {
		f := schema.Faultf(m.Record, reason, "%w", err)
		f.Column = server.ColumnName
		return nil, f
	}
	return nil, err
}

// reasonOf returns the reason where the SQLSTATE says that values are at fault,
// else nothing.
func reasonOf(state string) schema.Reason {
	switch state {
	case "23502":
		return schema.ReasonNotNull
	case "23503":
		return schema.ReasonForeignKey
	case "23505":
		return schema.ReasonUnique
	case "23514":
		return schema.ReasonCheck
	}
	switch state[:2] {
	case "22":
		return schema.ReasonValueRange
	case "23":
		return schema.ReasonHandler
	}
	return ""
}

func (s *EachSink[T]) call(ctx context.Context, tx pgx.Tx, m *schema.Message[T]) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = schema.Faultf(m.Record, schema.ReasonHandler, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	answer, err := s.fn(ctx, tx, *m)
	if err == nil {
		return resultOf(answer, m.Record)
	}
	if permanent, ok := errors.AsType[interface {
		error
		Permanent() bool
	}](err); ok && permanent.Permanent() {
		return nil, schema.AsFault(err, m.Record, schema.ReasonHandler)
	}
	return nil, fmt.Errorf("sinks: %s: %w", m.Position(), err)
}

func resultOf(answer any, r *schema.Record) ([]byte, error) {
	if answer == nil {
		return nil, nil
	}
	result, err := json.Marshal(answer)
	if err != nil {
		return nil, schema.Faultf(r, schema.ReasonHandler, "the result: %w", err)
	}
	return result, nil
}

// Batch returns the sink that calls fn once with the whole batch. An error is
// returned as it is: fn says which messages are at fault by a [*schema.Fault]
// with its Record, or by [schema.Faults]. A batch without messages does not call
// fn.
func Batch[T any](fn func(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error) Sink[T] {
	return batchSink[T]{fn}
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
