package sinks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

func TestMain(m *testing.M) { tablestest.Main(m) }

// batch makes messages from lines of the form `key=payload`; no payload is a
// tombstone. Offsets count from 0.
func batch(tb testing.TB, fields *schema.Fields, lines ...string) []schema.Message[schema.Row] {
	tb.Helper()
	decode := schema.Rows(fields)
	var out []schema.Message[schema.Row]
	for i, line := range lines {
		key, payload, _ := strings.Cut(line, "=")
		r := &schema.Record{Topic: "t", Offset: int64(i), Key: []byte(key), Time: time.UnixMilli(1767323045678)}
		if payload != "" {
			r.Value = []byte(payload)
		}
		body, err := decode(tb.Context(), r)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, schema.Message[schema.Row]{Record: r, Body: body})
	}
	return out
}

func prepare[T any](tb testing.TB, db *tablestest.DB, sink sinks.Sink[T]) error {
	tb.Helper()
	conn, err := db.Pool.Acquire(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Release()
	return sink.(sinks.Preparer).Prepare(tb.Context(), conn.Conn())
}

// prepared fails the test where Prepare does.
func prepared[T any](tb testing.TB, db *tablestest.DB, sink sinks.Sink[T]) sinks.Sink[T] {
	tb.Helper()
	if err := prepare(tb, db, sink); err != nil {
		tb.Fatal(err)
	}
	return sink
}

// apply applies the batch in a transaction of its own.
func apply[T any](tb testing.TB, db *tablestest.DB, sink sinks.Sink[T], batch []schema.Message[T]) error {
	tb.Helper()
	return pgx.BeginFunc(tb.Context(), db.Pool, func(tx pgx.Tx) error {
		return sink.Apply(tb.Context(), tx, batch)
	})
}

func mustApply[T any](tb testing.TB, db *tablestest.DB, sink sinks.Sink[T], batch []schema.Message[T]) {
	tb.Helper()
	if err := apply(tb, db, sink, batch); err != nil {
		tb.Fatal(err)
	}
}

// compact writes rows as "a,b c,d".
func compact(db *tablestest.DB, query string) string {
	var rows []string
	for _, row := range db.Rows(query) {
		rows = append(rows, strings.Join(row, ","))
	}
	return strings.Join(rows, " ")
}

func equal(tb testing.TB, got, want string) {
	tb.Helper()
	if got != want {
		tb.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// faultOf tells a fault as "offset reason field column".
func faultOf(tb testing.TB, err error) string {
	tb.Helper()
	f, ok := asFault(err)
	if !ok {
		tb.Fatalf("want a fault of a message, got %v", err)
	}
	return fmt.Sprintf("%d %s %s %s", f.Record.Offset, f.Reason, f.Field, f.Column)
}

// describe is Describe on a connection of the pool.
func describe(ctx context.Context, tb testing.TB, db *tablestest.DB, name string) (*sinks.Table, error) {
	tb.Helper()
	conn, err := db.Pool.Acquire(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Release()
	return sinks.Describe(ctx, conn.Conn(), name)
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// joinSorted writes lines as compact writes rows.
func joinSorted(lines []string) string { return strings.Join(sorted(lines), " ") }

// wantText fails where the error does not say all of the texts.
func wantText(tb testing.TB, err error, texts ...string) {
	tb.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			tb.Errorf("got %v, want %q in it", err, text)
		}
	}
}
