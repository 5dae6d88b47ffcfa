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
			create table latest (account int primary key, id int not null, amount numeric(12,2));
			create table doomed (id int primary key); insert into doomed select * from generate_series(0, 1500);
			create table purse (account int, currency text, balance numeric(12,2) not null, primary key (account, currency));
			create table posting (topic text, partition int, record_offset bigint, record_time timestamptz, message_key uuid,
				account int not null, counter_account int not null, currency text not null, amount numeric(12,2) not null)`,
		Effects: `select 'entry' as what, id, account, amount from entry
			union all select 'balance', null, account, total from balance
			union all select 'latest', id, account, amount from latest
			union all select 'doomed', id, null, null from doomed
			union all select 'purse', null, account, balance from purse
			union all select 'posting', record_offset, account, amount from posting order by 1, 2, 3, 4`,
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

// versionedEntry takes the version from the id, which rises with the offset.
func versionedEntry() sinks.Sink[entry] {
	s := upsertEntry().(*sinks.Upsert[entry])
	s.Version, s.Tombstone = "id", sinks.TombstoneIgnore
	return s
}

// guardedEntry tells duplicates by its key.
func guardedEntry() sinks.Sink[entry] {
	s := insertEntry().(*sinks.Insert[entry])
	s.KeyFields = []string{"id"}
	return s
}

func ignoringEntry() sinks.Sink[entry] {
	s := insertEntry().(*sinks.Insert[entry])
	s.OnConflict = sinks.ConflictIgnore
	return s
}

func deleteEntry() sinks.Sink[entry] {
	return &sinks.Delete[entry]{Table: "doomed", Key: []sinks.Column[entry]{sinks.Col("id", func(m schema.Message[entry]) any {
		if m.Body.Amount == "0.001" {
			return "no number"
		}
		return m.Body.ID
	})}}
}

// ledgerEntry lets the messages of each account meet in rows of their own.
func ledgerEntry() sinks.Sink[entry] {
	return &sinks.Ledger[entry]{
		Accounts: "purse", Entries: "posting",
		From: sinks.Col("", account), To: sinks.Col("", func(m schema.Message[entry]) any { return m.Body.Account + 10 }),
		Amount:   sinks.Col("", amountOf),
		Currency: sinks.Col("", func(schema.Message[entry]) any { return "EUR" }),
	}
}

// eachEntry is what a user may write.
func eachEntry() *sinks.EachSink[entry] {
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
	accumulates := func(sink func() sinks.Sink[entry]) sinkstest.Suite[entry] {
		s := suite(sink)
		s.AllFaults = true
		return s
	}
	idempotent := func(sink func() sinks.Sink[entry]) sinkstest.Suite[entry] {
		s := accumulates(sink)
		s.Idempotent = true
		return s
	}
	for name, s := range map[string]sinkstest.Suite[entry]{
		"Insert":           accumulates(insertEntry),
		"Insert/duplicate": idempotent(guardedEntry),
		"Insert/ignore":    idempotent(ignoringEntry),
		"Sum":              accumulates(sumEntry),
		"Ledger":           accumulates(ledgerEntry),
		"Upsert":           idempotent(upsertEntry),
		"Upsert/version":   idempotent(versionedEntry),
		"Delete":           idempotent(deleteEntry),
		"Tee":              accumulates(func() sinks.Sink[entry] { return sinks.Tee(insertEntry(), sumEntry(), upsertEntry()) }),
		"Tee/guarded":      idempotent(func() sinks.Sink[entry] { return sinks.Tee(guardedEntry(), sumEntry(), ledgerEntry()) }),
		"Batch": accumulates(func() sinks.Sink[entry] {
			insert := insertEntry()
			return &batchEntry{Sink: sinks.Batch(insert.Apply), Preparer: insert.(sinks.Preparer)}
		}),
	} {
		t.Run(name, func(t *testing.T) { sinkstest.Run(t, s) })
	}
	t.Run("Each", func(t *testing.T) {
		s := suite(func() sinks.Sink[entry] { return eachEntry() })
		s.PerMessage = true
		sinkstest.Run(t, s)
	})
	t.Run("Each/savepoints", func(t *testing.T) {
		s := accumulates(func() sinks.Sink[entry] { return eachEntry().Savepoints() })
		s.PerMessage = true
		sinkstest.Run(t, s)
	})
}

// batchEntry is a Batch whose function uses a ready-made sink.
type batchEntry struct {
	sinks.Sink[entry]
	sinks.Preparer
}
