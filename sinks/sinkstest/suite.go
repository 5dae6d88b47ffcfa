package sinkstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// Suite describes a sink to the tests: how to make it, what to feed it, where
// to see its effects, and what it promises.
type Suite[T any] struct {
	// New returns the sink. A [sinks.Preparer] is prepared by the tests. Required.
	New func() sinks.Sink[T]
	// Setup is the SQL that creates the sink's tables in an empty search_path;
	// the ledger's tables are there.
	Setup string
	// Message returns message number i, counted from 0, the same each time. The
	// record must have Topic, Partition, an Offset that rises with i, and a
	// Value. Messages whose numbers differ by a multiple of 4 should meet in one
	// row, if the sink's messages can. Required.
	Message func(i int) schema.Message[T]
	// Bad returns message number i with a body that the sink must refuse. Nil
	// says that the sink refuses none.
	Bad func(i int) schema.Message[T]
	// Effects is the query whose rows are the sink's effects, in an order of its
	// own and without what differs from run to run, such as the time. Required.
	Effects string

	// Idempotent says that the same batch twice has the effects of once. Without
	// it the tests filter the batch by keys, as the engine does. Defaults to
	// false.
	Idempotent bool
	// PerMessage says that the number of statements grows with the batch.
	// Defaults to false: it must be the same for 1 message and for 1,000.
	PerMessage bool
	// AllFaults says that the sink names all bad messages of a batch at once, by
	// [schema.Faults], and not the first one. Defaults to false.
	AllFaults bool
}

// Run runs all the tests, each as a subtest.
func Run[T any](t *testing.T, s Suite[T]) {
	t.Helper()
	for _, c := range checks[T]() {
		t.Run(c.name, func(t *testing.T) {
			if err := s.run(t, c); err != nil {
				t.Error(err)
			}
		})
	}
}

// check is one of the tests. It is a function that returns an error, so that
// the tests of this package can see it fail.
type check[T any] struct {
	name string
	run  func(ctx context.Context, b *bench[T]) error
}

func checks[T any]() []check[T] {
	return []check[T]{
		{"twice is once", twice[T]},
		{"rollback leaves nothing", rollback[T]},
		{"a batch can be applied again", again[T]},
		{"batches may be cut anywhere", cut[T]},
		{"an aborted transaction fails closed", aborted[T]},
		{"an ended transaction fails closed", ended[T]},
		{"a lost connection fails closed", lost[T]},
		{"no statement outside of the transaction", inside[T]},
		{"no statement for no message", empty[T]},
		{"statements do not grow with the batch", statements[T]},
		{"a bad message is named", bad[T]},
		{"all bad messages are named at once", allBad[T]},
		{"a report has an outcome for each message", report[T]},
		{"workers do not meet", concurrent[T]},
		{"prepare at any time", prepareAgain[T]},
	}
}

// bench is one test's own schema, with the sink in place.
type bench[T any] struct {
	Suite[T]
	tb    testing.TB
	db    *tablestest.DB
	trace *trace
	sink  sinks.Sink[T]
}

func (s Suite[T]) run(tb testing.TB, c check[T]) error {
	tb.Helper()
	b := &bench[T]{Suite: s, tb: tb, trace: &trace{}, sink: s.New()}
	if err := b.restart(tb.Context()); err != nil {
		return err
	}
	return c.run(tb.Context(), b)
}

// restart begins anew in an empty schema, with the same sink.
func (b *bench[T]) restart(ctx context.Context) error {
	b.tb.Helper()
	b.db = tablestest.New(b.tb, tablestest.Configure(func(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = b.trace }))
	if b.Setup != "" {
		b.db.Exec(b.Setup)
	}
	if err := b.prepare(ctx); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}

func (b *bench[T]) prepare(ctx context.Context) error {
	p, ok := b.sink.(sinks.Preparer)
	if !ok {
		return nil
	}
	return b.db.Pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return p.Prepare(ctx, conn.Conn()) })
}

// messages returns the messages from the first number to before the last.
func (b *bench[T]) messages(first, last int) []schema.Message[T] {
	var out []schema.Message[T]
	for i := first; i < last; i++ {
		out = append(out, b.Message(i))
	}
	return out
}

// apply applies a batch and commits.
func (b *bench[T]) apply(ctx context.Context, batch []schema.Message[T]) error {
	return pgx.BeginFunc(ctx, b.db.Pool, func(tx pgx.Tx) error { return b.sink.Apply(ctx, tx, batch) })
}

// effects returns the effects that are committed, as text.
func (b *bench[T]) effects() string { return b.db.Dump(b.Effects) }

// unchanged fails where the effects are no longer those.
func (b *bench[T]) unchanged(want, after string) error {
	if got := b.effects(); got != want {
		return fmt.Errorf("effects after %s:\n%s\nwant:\n%s", after, got, want)
	}
	return nil
}

// changed fails where a batch had no effects, for then a test proves nothing.
func (b *bench[T]) changed(before string) error {
	if b.effects() == before {
		return errors.New("the messages had no effects that the query Effects sees")
	}
	return nil
}

// indent makes a text of several lines readable within an error.
func indent(s string) string { return "\t" + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n\t") }
