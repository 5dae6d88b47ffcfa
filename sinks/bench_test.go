package sinks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

const benchSetup = `
	create unlogged table payment (id bigint, account text, amount numeric(12,2), paid boolean, at timestamptz);
	create unlogged table balance (account text primary key, total numeric(20,2) not null)`

var benchFields = schema.NewFields("id", "account", "amount", "paid", "at")

func benchBatch(b *testing.B, n int) []schema.Message[schema.Row] {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf(`%d={"id":%d,"account":"account-%d","amount":%d.25,"paid":true,"at":"2026-01-02T03:04:05.678901Z"}`, i, i, i%100, i))
	}
	return batch(b, benchFields, lines...)
}

// quiet is a transaction that drops its statements, to measure what comes
// before them: no database answers faster than none.
type quiet struct{ pgx.Tx }

func (quiet) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, nil
}

// BenchmarkSumEncode measures the folding of a row over 100 keys.
func BenchmarkSumEncode(b *testing.B) { benchEncode(b, sumPayments()) }

// BenchmarkUpsertEncode measures the folding of a row, each of its own key.
func BenchmarkUpsertEncode(b *testing.B) {
	benchEncode(b, &sinks.Upsert[schema.Row]{Table: "latest", Key: []string{"id"}, Fields: benchFields})
}

// BenchmarkInsert measures the whole of a batch of 1,000 rows.
func BenchmarkInsert(b *testing.B) {
	db := tablestest.New(b)
	db.Exec(benchSetup)
	sink := prepared(b, db, sinks.Sink[schema.Row](insertPayments()))
	messages := benchBatch(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		mustApply(b, db, sink, messages)
	}
	perRow(b, len(messages))
}

// BenchmarkInsertDuplicate measures what it costs to tell duplicates, where there
// are none.
func BenchmarkInsertDuplicate(b *testing.B) {
	db := tablestest.New(b)
	db.Exec(benchSetup + `; create unique index on payment (id)`)
	sink := insertPayments()
	sink.KeyFields = []string{"id"}
	for name, rule := range map[string]sinks.ConflictRule{
		"error": sinks.ConflictError, "duplicate": sinks.ConflictDuplicate, "ignore": sinks.ConflictIgnore, "first_try": sinks.ConflictDuplicate,
	} {
		b.Run(name, func(b *testing.B) {
			ctx := b.Context()
			if name == "first_try" {
				ctx = schema.FirstTry(ctx)
			}
			sink.OnConflict = rule
			prepared(b, db, sinks.Sink[schema.Row](sink))
			messages := benchBatch(b, 1000)
			for b.Loop() {
				b.StopTimer()
				db.Exec(`truncate payment`)
				b.StartTimer()
				if err := pgx.BeginFunc(ctx, db.Pool, func(tx pgx.Tx) error { return sink.Apply(ctx, tx, messages) }); err != nil {
					b.Fatal(err)
				}
			}
			perRow(b, len(messages))
		})
	}
}

// BenchmarkLedger measures the whole of a batch of 1,000 transfers among 100
// accounts.
func BenchmarkLedger(b *testing.B) {
	db := tablestest.New(b)
	db.Exec(`create unlogged table account (account text, currency text, balance numeric(20,2) not null, primary key (account, currency));
		create unlogged table entry (topic text, partition int, record_offset bigint, record_time timestamptz, message_key text,
			account text, counter_account text, currency text, amount numeric(20,2))`)
	sink := prepared(b, db, sinks.Sink[schema.Row](transferLedger()))
	var lines []string
	for i := range 1000 {
		lines = append(lines, moveLine(fmt.Sprint("account-", i%100), fmt.Sprint("account-", (i+1+i/100)%100), "1.25", "EUR"))
	}
	messages := batch(b, transfers, lines...)
	for b.Loop() {
		mustApply(b, db, sink, messages)
	}
	perRow(b, len(messages))
}

func insertPayments() *sinks.Insert[schema.Row] {
	return &sinks.Insert[schema.Row]{Table: "payment", Fields: benchFields}
}

func sumPayments() *sinks.Sum[schema.Row] {
	return &sinks.Sum[schema.Row]{
		Table: "balance",
		Key:   []sinks.Column[schema.Row]{sinks.Field("account", "account")},
		Add:   []sinks.Column[schema.Row]{sinks.Field("total", "amount")},
	}
}

func benchEncode(b *testing.B, sink sinks.Sink[schema.Row]) {
	db := tablestest.New(b)
	db.Exec(benchSetup + `; create table latest (like payment, primary key (id))`)
	prepared(b, db, sink)
	messages := benchBatch(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if err := sink.Apply(b.Context(), quiet{}, messages); err != nil {
			b.Fatal(err)
		}
	}
	perRow(b, len(messages))
}

func perRow(b *testing.B, rows int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
}
