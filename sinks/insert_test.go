package sinks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

func asFault(err error) (*schema.Fault, bool) { return errors.AsType[*schema.Fault](err) }

func sqlstate(tb testing.TB, err error) string {
	tb.Helper()
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		tb.Fatalf("want an error of PostgreSQL, got %v", err)
	}
	return e.Code
}

// Proves that rows are appended in order, that a missing field leaves the
// column to its default, that null is null, and that a column without default
// makes no second statement.
func TestInsert(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table payment (id bigint primary key, note text default 'none', amount numeric(12,2), at bigint generated always as identity)`)
	fields := schema.NewFields("id", "note", "amount", "elsewhere")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "payment", Fields: fields}))
	mustApply(t, db, sink, batch(t, fields,
		`a={"id":3,"note":"x","amount":1.50}`,
		`b={"id":1,"amount":7}`,
		`c={"id":2,"note":null}`,
	))
	equal(t, compact(db, `select id, coalesce(note, '-'), coalesce(amount::text, '-') from payment order by at`), "3,x,1.50 2,-,- 1,none,7.00")
}

// Proves case C19: names are taken as they are, whatever is in them.
func TestInsertQuotesNames(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table "Order" (id int primary key, "randomText" text, "select" int, "user" text, "a b" boolean, "x""y" text)`)
	fields := schema.NewFields("id", "randomText", "select", "user", "a b", `x"y`)
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "Order", Fields: fields}))
	mustApply(t, db, sink, batch(t, fields, `1={"id":1,"randomText":"c","select":69,"user":"u1","a b":true,"x\"y":"q"}`))
	equal(t, compact(db, `select * from "Order"`), "1,c,69,u1,t,q")
}

// Proves case C21: a batch has no limit from the number of parameters.
func TestInsertManyRows(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table many (id int primary key, a text, b int, c float8, d boolean)`)
	fields := schema.NewFields("id", "a", "b", "c", "d")
	var lines []string
	for i := range 20_000 {
		lines = append(lines, fmt.Sprintf(`%d={"id":%d,"a":"x","b":%d,"c":1.5,"d":true}`, i, i, i))
	}
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "many", Fields: fields}))
	mustApply(t, db, sink, batch(t, fields, lines...))
	equal(t, compact(db, `select count(*), sum(b), sum(c), count(*) filter (where d) from many`), "20000,199990000,30000,20000")
}

// Proves case D01: a unique violation keeps its SQLSTATE for the engine.
func TestInsertUniqueViolation(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table app (id int primary key, v text)`)
	fields := schema.NewFields("id", "v")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "app", Fields: fields}))
	err := apply(t, db, sink, batch(t, fields, `1={"id":1,"v":"a"}`, `1={"id":1,"v":"b"}`, `2={"id":2,"v":"c"}`))
	equal(t, sqlstate(t, err), "23505")
	if !strings.HasPrefix(err.Error(), "sinks: insert app: ") {
		t.Errorf("the error does not say where it is from: %v", err)
	}
}

// Proves that the sink finds a message that cannot be stored by itself, and
// names record, field and column.
func TestInsertFaults(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table f (id int primary key, name varchar(3) not null, amount numeric(5,2), at timestamptz default now())`)
	fields := schema.NewFields("id", "who.name", "amount", "at")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "f", Columns: []sinks.Column[schema.Row]{
		sinks.Field("id", "id"), sinks.Field("name", "who.name"), sinks.Field("amount", "amount"), sinks.Field("at", "at"),
	}}))
	for payload, want := range map[string]string{
		``:                                  "1 tombstone  ",
		`{"id":2}`:                          "1 not_null who.name name",
		`{"id":null}`:                       "1 not_null id id",
		`{"id":2,"who":{"name":"four"}}`:    "1 value_range who.name name",
		`{"id":2,"who":{"name":"a\u0000"}}`: "1 value_range who.name name",
		`{"id":2,"who":{"name":"a"},"amount":1.005}`:         "1 value_range amount amount",
		`{"id":2,"who":{"name":"a"},"amount":1000}`:          "1 value_range amount amount",
		`{"id":2,"who":{"name":"a"},"amount":"abc"}`:         "1 value_type amount amount",
		`{"id":2,"who":{"name":"a"},"at":1767323045}`:        "1 value_type at at",
		`{"id":2,"who":{"name":"a"},"at":"2026-01-02"}`:      "1 value_type at at",
		`{"id":2.5,"who":{"name":"a"}}`:                      "1 value_range id id",
		`{"id":true,"who":{"name":"a"}}`:                     "1 value_type id id",
		`{"id":2147483648,"who":{"name":"a"}}`:               "1 value_range id id",
		`{"id":2,"who":{"name":"a"},"amount":1e999999999}`:   "1 value_range amount amount",
		`{"id":2,"who":{"name":"a"},"amount":{"scale":"1"}}`: "1 value_type amount amount",
	} {
		err := apply(t, db, sink, batch(t, fields, `1={"id":1,"who":{"name":"ok"}}`, "2="+payload))
		if got := faultOf(t, err); got != want {
			t.Errorf("%s: got %q, want %q (%v)", payload, got, want, err)
		}
	}
	equal(t, db.Value(`select count(*) from f`), "0")
}

// Proves that a pseudo-field reads the record.
func TestPseudoFields(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table p (k text, raw bytea, o bigint, part int, topic text, at timestamptz, h text)`)
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "p", Columns: []sinks.Column[schema.Row]{
		sinks.Field("k", "$key"), sinks.Field("raw", "$key"), sinks.Field("o", "$offset"), sinks.Field("part", "$partition"),
		sinks.Field("topic", "$topic"), sinks.Field("at", "$time"), sinks.Field("h", "$header.trace"),
	}}))
	messages := batch(t, schema.NewFields("id"), `k1={}`, `k2={}`)
	messages[1].Headers = []schema.Header{{Key: "trace", Value: []byte("a")}, {Key: "trace", Value: []byte("b")}}
	mustApply(t, db, sink, messages)
	equal(t, compact(db, `select k, raw, o, part, topic, at, coalesce(h, '-') from p order by o`),
		`k1,\x6b31,0,0,t,2026-01-02 03:04:05.678+00,- k2,\x6b32,1,0,t,2026-01-02 03:04:05.678+00,b`)
}

// Proves that Prepare reports every fault of the configuration with what was
// probably meant, and that a path the decoder does not map is an error.
func TestInsertConfiguration(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table pay (id int primary key, amount numeric not null, double int generated always as (id * 2) stored)`)
	err := prepare(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "pay", Columns: []sinks.Column[schema.Row]{
		sinks.Field("amout", "amount"), sinks.Field("double", "double"), sinks.Field("id", "id"), sinks.Field("id", "id"),
	}}))
	equal(t, fmt.Sprint(err), strings.Join([]string{
		`sinks: insert pay: no column "amout" in table pay; nearest is "amount"`,
		`sinks: insert pay: column "double" of table pay is generated always and cannot be written`,
		`sinks: insert pay: column "id" is given twice`,
		`sinks: insert pay: column "amount" of table pay is not null and has no default, but is not written`,
	}, "\n"))

	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "pay", Columns: []sinks.Column[schema.Row]{
		sinks.Field("id", "id"), sinks.Field("amount", "amout"),
	}}))
	err = apply(t, db, sink, batch(t, schema.NewFields("id", "amount"), `1={"id":1,"amount":2}`))
	if _, ok := asFault(err); ok || err == nil || !strings.Contains(err.Error(), `the decoder maps no field "amout"; nearest is "amount"`) {
		t.Errorf("an unmapped path must be an error that is no message's fault, got %v", err)
	}
}

// Proves that Apply before Prepare says so.
func TestNotPrepared(t *testing.T) {
	db := tablestest.New(t)
	for _, sink := range []sinks.Sink[schema.Row]{
		&sinks.Insert[schema.Row]{Table: "x"}, &sinks.Upsert[schema.Row]{Table: "x"}, &sinks.Sum[schema.Row]{Table: "x"},
	} {
		if err := apply(t, db, sink, nil); err == nil || !strings.Contains(err.Error(), "it was not prepared") {
			t.Errorf("%T: got %v", sink, err)
		}
	}
}
