package sinks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// exampleTB lets an example have a schema of its own, as a test has.
type exampleTB struct {
	testing.TB
	ends []func()
}

func (*exampleTB) Name() string             { return "example" }
func (*exampleTB) Helper()                  {}
func (*exampleTB) Context() context.Context { return context.Background() }
func (e *exampleTB) Cleanup(f func())       { e.ends = append(e.ends, f) }
func (*exampleTB) Fatal(args ...any)        { panic(fmt.Sprint(args...)) }
func (*exampleTB) Error(args ...any)        { panic(fmt.Sprint(args...)) }

// run applies the lines to the sink as the engine would, and prints the rows of
// the query and the error.
func run(setup string, sink sinks.Sink[schema.Row], fields *schema.Fields, query string, lines ...string) {
	tb := &exampleTB{}
	db := tablestest.New(tb)
	defer func() {
		for i := len(tb.ends) - 1; i >= 0; i-- {
			tb.ends[i]()
		}
	}()
	db.Exec(setup)
	if _, ok := sink.(sinks.Preparer); ok {
		if err := prepare(tb, db, sink); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := apply(tb, db, sink, batch(tb, fields, lines...)); err != nil {
		fmt.Println(err)
	}
	for _, row := range db.Rows(query) {
		fmt.Println(row)
	}
}

// The columns are the fields that have a column of their name.
func ExampleInsert() {
	fields := schema.NewFields("id", "amount")
	sink := &sinks.Insert[schema.Row]{Table: "payment", Fields: fields}

	run(`create table payment (id bigint primary key, amount numeric(12,2) not null, currency text default 'EUR')`,
		sink, fields, `select * from payment`,
		`a={"id":1,"amount":19.90}`, `b={"id":2,"amount":"0.1"}`)
	// Output:
	// [1 19.90 EUR]
	// [2 0.10 EUR]
}

// A lost cent is an error: the message is named, and nothing is written.
func ExampleInsert_fault() {
	fields := schema.NewFields("id", "amount")
	sink := &sinks.Insert[schema.Row]{Table: "payment", Fields: fields}

	run(`create table payment (id bigint primary key, amount numeric(12,2) not null)`,
		sink, fields, `select * from payment`,
		`a={"id":1,"amount":19.90}`, `b={"id":2,"amount":0.001}`)
	// Output:
	// sinks: insert payment: t/0@1: value_range: field amount: column amount: "0.001" does not fit numeric(12,2): it has 3 digits after the point, and nothing is rounded
}

// The last message of a key wins, field by field, and a tombstone deletes.
func ExampleUpsert() {
	fields := schema.NewFields("id", "name", "city")
	sink := &sinks.Upsert[schema.Row]{Table: "customer", Key: []string{"id"}, Fields: fields}

	run(`create table customer (id int primary key, name text, city text)`,
		sink, fields, `select * from customer order by id`,
		`1={"id":1,"name":"Ada","city":"London"}`, `2={"id":2,"name":"Bob"}`, `1={"id":1,"city":"Paris"}`, `2=`)
	// Output:
	// [1 Ada Paris]
}

// Both sides of a transfer, and how many there were, in one transaction.
func ExampleSum() {
	fields := schema.NewFields("from", "to", "amount", "negative")
	side := func(account, amount string) sinks.Sink[schema.Row] {
		return &sinks.Sum[schema.Row]{
			Table: "balance",
			Key:   []sinks.Column[schema.Row]{sinks.Field("account", account)},
			Add:   []sinks.Column[schema.Row]{sinks.Field("total", amount), sinks.Const[schema.Row]("transfers", 1)},
		}
	}
	sink := sinks.Tee(side("from", "negative"), side("to", "amount"))

	run(`create table balance (account text primary key, total numeric(12,2) not null, transfers bigint not null)`,
		sink, fields, `select * from balance order by account`,
		`1={"from":"ada","to":"bob","amount":10.10,"negative":-10.10}`, `2={"from":"bob","to":"eve","amount":0.05,"negative":-0.05}`)
	// Output:
	// [ada -10.10 1]
	// [bob 10.05 2]
	// [eve 0.05 1]
}

// A function gets the transaction, and says by an error of its own what cannot
// be handled.
func ExampleEach() {
	fields := schema.NewFields("sku", "n")
	sink := sinks.Each(func(ctx context.Context, tx pgx.Tx, m schema.Message[schema.Row]) error {
		tag, err := tx.Exec(ctx, `update stock set n = n - $2::text::int where sku = $1 and n >= $2::text::int`,
			string(m.Body.Get("sku").Raw), string(m.Body.Get("n").Raw))
		if err == nil && tag.RowsAffected() == 0 {
			return schema.Faultf(m.Record, schema.ReasonHandler, "not enough in stock")
		}
		return err
	})

	run(`create table stock (sku text primary key, n int not null); insert into stock values ('bolt', 5)`,
		sink, fields, `select * from stock`, `1={"sku":"bolt","n":9}`)
	// Output:
	// t/0@0: handler: not enough in stock
	// [bolt 5]
}

// The constraint tells a message whose effect is there, although nothing knows
// of its key any more: it is kept from the total, too.
func ExampleInsert_duplicate() {
	fields := schema.NewFields("id", "account", "amount")
	sink := sinks.Tee[schema.Row](
		&sinks.Insert[schema.Row]{Table: "payment", Fields: fields, OnConflict: sinks.ConflictDuplicate, KeyFields: []string{"id"}},
		&sinks.Sum[schema.Row]{
			Table: "balance",
			Key:   []sinks.Column[schema.Row]{sinks.Field("account", "account")},
			Add:   []sinks.Column[schema.Row]{sinks.Field("total", "amount")},
		},
	)

	run(`create table payment (id bigint primary key, amount numeric(12,2) not null);
		create table balance (account text primary key, total numeric(12,2) not null);
		insert into payment values (1, 19.90); insert into balance values ('ada', 19.90)`,
		sink, fields, `select * from balance`,
		`a={"id":1,"account":"ada","amount":19.90}`, `b={"id":2,"account":"ada","amount":0.10}`)
	// Output:
	// [ada 20.00]
}

// What is older than the row leaves it alone.
func ExampleUpsert_version() {
	fields := schema.NewFields("id", "city", "updated")
	sink := &sinks.Upsert[schema.Row]{
		Table: "customer", Key: []string{"id"}, Fields: fields, Version: "updated", Tombstone: sinks.TombstoneIgnore,
	}

	run(`create table customer (id int primary key, city text, updated timestamptz);
		insert into customer values (1, 'Paris', '2026-01-02T00:00:00Z'), (2, 'Rome', null)`,
		sink, fields, `select id, city from customer order by id`,
		`1={"id":1,"city":"London","updated":"2025-12-31T00:00:00Z"}`, `2={"id":2,"city":"Oslo","updated":"2025-12-31T00:00:00Z"}`)
	// Output:
	// [1 Paris]
	// [2 Oslo]
}

// Every message is the end of something.
func ExampleDelete() {
	fields := schema.NewFields("session")
	sink := &sinks.Delete[schema.Row]{Table: "session", Key: []sinks.Column[schema.Row]{sinks.Field("id", "session")}}

	run(`create table session (id text primary key); insert into session values ('a'), ('b'), ('c')`,
		sink, fields, `select * from session`, `x={"session":"a"}`, `c=`)
	// Output:
	// [b]
}

// Money comes from the world, and nobody else spends more than there is.
func ExampleLedger() {
	fields := schema.NewFields("from", "to", "amount", "currency")
	sink := &sinks.Ledger[schema.Row]{
		Accounts: "account", Entries: "entry",
		From: sinks.Field("account", "from"), To: sinks.Field("account", "to"),
		Amount: sinks.Field("amount", "amount"), Currency: sinks.Field("currency", "currency"),
		NonNegative: true, Overdraft: []string{"world"},
	}
	tables := `
		create table account (account text, currency char(3), balance numeric(20,2) not null, primary key (account, currency));
		create table entry (topic text, partition int, record_offset bigint, record_time timestamptz, message_key text,
			account text, counter_account text, currency char(3), amount numeric(20,2))`

	run(tables, sink, fields, `select account, balance from account order by account`,
		`1={"from":"world","to":"ada","amount":10,"currency":"EUR"}`, `2={"from":"ada","to":"bob","amount":9.99,"currency":"EUR"}`)
	run(tables, sink, fields, `select account, balance from account order by account`,
		`1={"from":"world","to":"ada","amount":10,"currency":"EUR"}`, `2={"from":"ada","to":"bob","amount":10.01,"currency":"EUR"}`)
	// Output:
	// [ada 0.01]
	// [bob 9.99]
	// [world -10.00]
	// sinks: ledger entry: t/0@1: insufficient_funds: field amount: column balance: the account lacks 0.01 of it
}

// What the function answers is kept, and a duplicate is given it. Savepoints let
// it go on behind a message that is at fault.
func ExampleEachResult() {
	type receipt struct{ Number int }
	sink := sinks.EachResult(func(ctx context.Context, tx pgx.Tx, m schema.Message[schema.Row]) (any, error) {
		var r receipt
		err := tx.QueryRow(ctx, `insert into receipt (sku) values ($1) returning number`, string(m.Body.Get("sku").Raw)).Scan(&r.Number)
		return r, err
	}).Savepoints()

	fields := schema.NewFields("sku")
	run(`create table receipt (number int generated always as identity, sku text unique)`,
		sink, fields, `select sku from receipt`, `1={"sku":"bolt"}`, `2={"sku":"nut"}`)
	// Output:
	// [bolt]
	// [nut]
}

// A body that is a Go type names its columns.
func ExampleCol() {
	type payment struct {
		ID     int64
		Amount string
	}
	sink := &sinks.Insert[payment]{Table: "payment", Columns: []sinks.Column[payment]{
		sinks.Col("id", func(m schema.Message[payment]) any { return m.Body.ID }),
		sinks.Col("amount", func(m schema.Message[payment]) any { return m.Body.Amount }),
	}}
	value, err := sink.Columns[1].Value(&schema.Message[payment]{Body: payment{Amount: "19.90"}})
	fmt.Println(string(value.Raw), err)
	// Output:
	// 19.90 <nil>
}
