package sinks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/schema"
)

// Refresh returns the sink that prepares the given one again while it runs, so
// that a table may be altered without a restart: before the next batch after
// PostgreSQL has said that a table, a column or a type is not what it was, and
// at least after every so long, which is the time until a new column is seen;
// zero or less turns that off. It asks the catalog within the transaction of the
// batch that comes next.
//
// What becomes of a change:
//
//	a column is added        one that Columns name or that has the name of a field of Fields
//	                         is written from then on; it must be among the fields that the
//	                         decoder maps, which are fixed at the start
//	a column is dropped      one that is written: the batch fails with an error that names it,
//	                         again after each pause, and goes on by itself once it is back
//	a type or default,       used from then on
//	a constraint is changed
//
// A column that Columns name must be there at the start, or Prepare refuses it.
// A field of a record that the decoder does not map is never looked at.
//
// The error of a batch that met the change is [ErrTargetChanged], and no message
// is blamed for it. That, and what the look finds wrong, is a
// [schema.UnavailableError]: the engine tries the batch again. Without Refresh a change
// that concerns the sink halts the partition.
func Refresh[T any](sink Sink[T], every time.Duration) *RefreshSink[T] {
	return &RefreshSink[T]{sink: sink, every: every}
}

// ErrTargetChanged says that a table is not what it was when the sink looked at
// it. It is not a message's fault: the next attempt looks again.
var ErrTargetChanged = errors.New("the target has changed since it was looked at; it is looked at again before the next attempt")

// RefreshSink is what [Refresh] returns.
type RefreshSink[T any] struct {
	sink  Sink[T]
	every time.Duration

	stale atomic.Bool
	due   atomic.Int64 // Unix nanoseconds; 0 before the first Prepare
}

// Parts returns the sink.
func (r *RefreshSink[T]) Parts() []Sink[T] { return []Sink[T]{r.sink} }

// Kind implements [Kinder]: it is the sink's own.
func (r *RefreshSink[T]) Kind() Kind { return KindOf(r.sink) }

// guards and what let an Insert that tells duplicates be seen through a Refresh.
func (r *RefreshSink[T]) guards() bool {
	g, ok := r.sink.(guard)
	return ok && g.guards()
}

func (r *RefreshSink[T]) what() string { return r.sink.(guard).what() }

// Prepare implements [Preparer].
func (r *RefreshSink[T]) Prepare(ctx context.Context, conn *pgx.Conn) error {
	p, ok := r.sink.(Preparer)
	if !ok {
		return nil
	}
	// Before the look, not after it: a change in between must not go unseen.
	r.stale.Store(false)
	r.due.Store(time.Now().Add(r.every).UnixNano())
	if err := p.Prepare(ctx, conn); err != nil {
		r.stale.Store(true)
		return err
	}
	return nil
}

// Apply implements [Sink].
func (r *RefreshSink[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	_, err := r.ApplyReport(ctx, tx, batch)
	return err
}

// ApplyReport applies the batch and returns what the sink reports of it.
func (r *RefreshSink[T]) ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]schema.Outcome, error) {
	if len(batch) > 0 && r.needed() {
		if err := r.Prepare(ctx, tx.Conn()); err != nil {
			return nil, schema.Unavailable(err)
		}
	}
	out, err := applyReport(ctx, tx, r.sink, batch)
	if server, ok := errors.AsType[*pgconn.PgError](err); ok && outdated[server.Code] {
		r.stale.Store(true)
		return nil, schema.Unavailable(fmt.Errorf("%w: %w", ErrTargetChanged, err))
	}
	return out, err
}

// Suspects returns the sink's suspects.
func (r *RefreshSink[T]) Suspects(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]int, error) {
	return suspectsOf(ctx, tx, r.sink, batch)
}

// needed reports whether the target must be looked at again. Of several workers
// one does so when the time has come, which is no time of a record or an effect.
func (r *RefreshSink[T]) needed() bool {
	if r.stale.Load() {
		return true
	}
	due := r.due.Load()
	if r.every <= 0 || due == 0 || time.Now().UnixNano() < due {
		return false
	}
	return r.due.CompareAndSwap(due, time.Now().Add(r.every).UnixNano())
}

// outdated are the states that a statement which was right has after a change of
// its tables (PostgreSQL manual, appendix A).
var outdated = map[string]bool{
	"0A000": true, // feature_not_supported: cached plan must not change result type
	"42703": true, // undefined_column
	"42704": true, // undefined_object: a type
	"42804": true, // datatype_mismatch
	"42846": true, // cannot_coerce
	"42883": true, // undefined_function: no operator for the new type
	"428C9": true, // generated_always
	"42P01": true, // undefined_table
	"42P10": true, // invalid_column_reference: the unique index is gone
	"3F000": true, // invalid_schema_name
}
