package sinks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/sinks"
	"github.com/oncestream/oncestream/sinks/sinkstest"
)

// entry is the body of the conformance tests, as a Go type.
type entry struct {
	ID      int
	Account int
	Amount  any
}

func entryMessage(i int) schema.Message[entry] {
	return schema.Message[entry]{
		Record: &schema.Record{Topic: "t", Offset: int64(i), Key: fmt.Append(nil, i%4), Value: []byte("x")},
		Body:   entry{ID: i, Account: i % 4, Amount: "0.10"},
	}
}

func badEntry(i int) schema.Message[entry] {
	m := entryMessage(i)
	m.Body.Amount = "0.001"
	return m
}

// id, account and amount are columns that any of the sinks may take.
func id(m schema.Message[entry]) any       { return m.Body.ID }
func account(m schema.Message[entry]) any  { return m.Body.Account }
func amountOf(m schema.Message[entry]) any { return m.Body.Amount }

func suite(sink func() sinks.Sink[entry]) sinkstest.Suite[entry] {
	return sinkstest.Suite[entry]{
		New: sink,
		Setup: `create table entry (id int primary key, account int not null, amount numeric(12,2) not null);
			create table balance (account int primary key, total numeric(12,2) not null);
			create table latest (account int primary key, id int not null, amount numeric(12,2))`,
		Effects: `select 'entry' as what, id, account, amount from entry
			union all select 'balance', null, account, total from balance
			union all select 'latest', id, account, amount from latest order by 1, 2, 3, 4`,
		Message: entryMessage,
		Bad:     badEntry,
	}
}

func insertEntry() sinks.Sink[entry] {
	return &sinks.Insert[entry]{Table: "entry", Columns: []sinks.Column[entry]{
		sinks.Col("id", id), sinks.Col("account", account), sinks.Col("amount", amountOf),
	}}
}

func sumEntry() sinks.Sink[entry] {
	return &sinks.Sum[entry]{
		Table: "balance",
		Key:   []sinks.Column[entry]{sinks.Col("account", account)},
		Add:   []sinks.Column[entry]{sinks.Col("total", amountOf)},
	}
}

func upsertEntry() sinks.Sink[entry] {
	return &sinks.Upsert[entry]{Table: "latest", Key: []string{"account"}, Columns: []sinks.Column[entry]{
		sinks.Col("account", account), sinks.Col("id", id), sinks.Col("amount", amountOf),
	}}
}

// eachEntry is what a user may write.
func eachEntry() sinks.Sink[entry] {
	return sinks.Each(func(ctx context.Context, tx pgx.Tx, m schema.Message[entry]) error {
		if m.Body.Amount == "0.001" {
			return schema.Faultf(nil, schema.ReasonHandler, "half a cent")
		}
		_, err := tx.Exec(ctx, `insert into entry values ($1, $2, $3)`, m.Body.ID, m.Body.Account, m.Body.Amount)
		return err
	})
}

// Proves that each sink of this package keeps to what a sink promises.
func TestConformance(t *testing.T) {
	t.Run("Insert", func(t *testing.T) { sinkstest.Run(t, suite(insertEntry)) })
	t.Run("Sum", func(t *testing.T) { sinkstest.Run(t, suite(sumEntry)) })
	t.Run("Upsert", func(t *testing.T) {
		s := suite(upsertEntry)
		s.Idempotent = true
		sinkstest.Run(t, s)
	})
	t.Run("Each", func(t *testing.T) {
		s := suite(eachEntry)
		s.PerMessage = true
		sinkstest.Run(t, s)
	})
	t.Run("Tee", func(t *testing.T) {
		sinkstest.Run(t, suite(func() sinks.Sink[entry] { return sinks.Tee(insertEntry(), sumEntry(), upsertEntry()) }))
	})
	t.Run("Batch", func(t *testing.T) {
		sinkstest.Run(t, suite(func() sinks.Sink[entry] {
			insert := insertEntry()
			return &batchEntry{Sink: sinks.Batch(insert.Apply), Preparer: insert.(sinks.Preparer)}
		}))
	})
}

// batchEntry is a Batch whose function uses a ready-made sink.
type batchEntry struct {
	sinks.Sink[entry]
	sinks.Preparer
}
