package sinks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
	"github.com/oncestream/oncestream/sinks/sinkstest"
)

func param(name, field, typ string) sinks.Param[schema.Row] {
	return sinks.Param[schema.Row]{Column: sinks.Field(name, field), Type: typ}
}

var stockFields = schema.NewFields("sku", "n")

func stockSQL(statement string, rows sinks.Rows) *sinks.SQL[schema.Row] {
	return &sinks.SQL[schema.Row]{Statement: statement, Rows: rows, Params: []sinks.Param[schema.Row]{param("sku", "sku", ""), param("n", "n", "int")}}
}

// Proves that the statement sees the messages with their types, that a missing
// field is null, and that text which looks like SQL stays text.
func TestSQL(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create domain cents as bigint check (value >= 0); create type mood as enum ('sad', 'ok');
		create table got (place bigint, a text, b numeric, c cents, d mood, e jsonb, f text[], g timestamptz, h bigint)`)
	fields := schema.NewFields("a", "b", "c", "d", "e", "f", "g")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.SQL[schema.Row]{
		Statement: `insert into got select m.ordinality, m.a, m.b, m.c, m.d, m.e, m.f, m.g, m.h from message m where ';--' <> $$message$$;`,
		Params: []sinks.Param[schema.Row]{
			param("a", "a", "text"), param("b", "b", "numeric(5,2)"), param("c", "c", "cents"), param("d", "d", "mood"),
			param("e", "e", "jsonb"), param("f", "f", "text[]"), param("g", "g", "timestamptz(3)"), param("h", "$offset", "bigint"),
		},
	}))
	mustApply(t, db, sink, batch(t, fields,
		`k={"a":"'); drop table got; --","b":1.5,"c":7,"d":"ok","e":{"x":1},"f":["p","q"],"g":"2026-01-02T03:04:05.678Z"}`, `k={"a":null}`))
	equal(t, db.Dump(`select * from got order by 1`), `place  a                       b     c     d     e         f      g                           h
1      '); drop table got; --  1.5   7     ok    {"x": 1}  {p,q}  2026-01-02 03:04:05.678+00  0
2      null                    null  null  null  null      null   null                        1
`)
	for payload, want := range map[string]string{
		`{"b":0.001}`: "0 value_range b b", `{"g":"2026-01-02T03:04:05.6789Z"}`: "0 value_range g g", `{"c":"x"}`: "0 value_type c c",
	} {
		equal(t, faultOf(t, apply(t, db, sink, batch(t, fields, "k="+payload))), want)
	}
	equal(t, sqlstate(t, apply(t, db, sink, batch(t, fields, `k={"c":-1}`))), "23514")
	equal(t, faultOf(t, apply(t, db, sink, batch(t, fields, `k=`))), "0 tombstone  ")
}

// Proves that the statement may begin with queries of its own, recursive ones
// and those that modify data among them, after comments.
func TestSQLWith(t *testing.T) {
	for name, statement := range map[string]string{
		"plain":     `insert into done select sku, n from message`,
		"with":      "-- a comment\n/* and /* nested */ one */ WITH moved as (delete from stock s using message m where s.sku = m.sku returning s.sku) insert into done select sku, n from message where sku in (select sku from moved)",
		"recursive": `with recursive r(i) as (select 1 union all select i + 1 from r where i < 1) insert into done select sku, n from message, r`,
		"update":    `update stock set n = stock.n - m.n from message m where stock.sku = m.sku returning stock.sku`,
	} {
		t.Run(name, func(t *testing.T) {
			db := tablestest.New(t)
			db.Exec(`create table stock (sku text, n int); insert into stock values ('a', 10), ('b', 10); create table done (sku text, n int)`)
			sink := prepared(t, db, sinks.Sink[schema.Row](stockSQL(statement, "")))
			mustApply(t, db, sink, batch(t, stockFields, `k={"sku":"a","n":1}`, `k={"sku":"b","n":2}`))
			want := "a,1 b,2"
			query := `select sku, n from done order by 1`
			if name == "update" {
				want, query = "a,9 b,8", `select * from stock order by 1`
			}
			equal(t, compact(db, query), want)
		})
	}
}

// Proves that a batch in which two messages mean one row is not half lost: it is
// refused as a whole, its halves pass, and a message without a row is named.
func TestSQLRows(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table stock (sku text, n int); insert into stock values ('a', 10)`)
	update := `update stock set n = stock.n - m.n from message m where stock.sku = m.sku`
	sink := prepared(t, db, sinks.Sink[schema.Row](stockSQL(update, sinks.RowsEach)))
	messages := batch(t, stockFields, `k={"sku":"a","n":1}`, `k={"sku":"a","n":2}`, `k={"sku":"x","n":1}`)
	err := apply(t, db, sink, messages[:2])
	f, ok := asFault(err)
	if !ok || f.Record != nil || !strings.Contains(err.Error(), "1 rows for 2 messages") {
		t.Errorf("got %v", err)
	}
	equal(t, compact(db, `select n from stock`), "10")
	mustApply(t, db, sink, messages[:1])
	mustApply(t, db, sink, messages[1:2])
	equal(t, compact(db, `select n from stock`), "7")
	equal(t, faultOf(t, apply(t, db, sink, messages[2:])), "2 handler  ")
	grouped := prepared(t, db, sinks.Sink[schema.Row](stockSQL(
		`update stock set n = stock.n - m.n from (select sku, sum(n) as n from message group by sku) m where stock.sku = m.sku`, sinks.RowsAny)))
	mustApply(t, db, grouped, messages)
	equal(t, compact(db, `select n from stock`), "4")
}

// Proves that Prepare finds what is wrong, all of it, with its place in the
// statement as it was written.
func TestSQLPrepare(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table stock (sku text, n int)`)
	for statement, want := range map[string]string{
		"insert into stock\nselect skuu, n from message":        "at 2:8 of the statement: ERROR: column \"skuu\" does not exist",
		"with é as (select 1)\n select 1 from message, nowhere": "at 2:25 of the statement: ERROR: relation \"nowhere\" does not exist",
		"delete from stock":                             "does not read the messages",
		"select 1 from message; delete from stock":      "multiple commands",
		"commit -- message":                             "at 1:1 of the statement: ERROR: syntax error",
		"insert into stock select sku, $3 from message": "the statement has parameters of its own",
	} {
		err := prepare(t, db, sinks.Sink[schema.Row](stockSQL(statement, "")))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", statement, err, want)
		}
	}
	err := prepare(t, db, sinks.Sink[schema.Row](&sinks.SQL[schema.Row]{
		Name: "audit", Statement: "select 1 from message", Rows: "some",
		Params: []sinks.Param[schema.Row]{param("a", "a", "int"), param("a", "a", "int")},
	}))
	equal(t, fmt.Sprint(err), `sinks: sql audit: rows "some" is neither each nor any`)
	err = prepare(t, db, sinks.Sink[schema.Row](&sinks.SQL[schema.Row]{
		Statement: "select 1 from message",
		Params: []sinks.Param[schema.Row]{
			param("a", "a", "int"), param("a", "a", "int"), param("b", "b", "nothing"), param("c", "c", "int); drop table stock; --"),
			param("ordinality", "a", "int"),
			{Column: sinks.Column[schema.Row]{Name: "d"}},
		},
	}))
	for _, want := range []string{`parameter "a" is given twice`, `parameter "b": no type "nothing"`, `parameter "c": type "int); drop`, `called "ordinality"`, `parameter "d" has no Value`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	equal(t, compact(db, `select count(*) from stock`), "0")
}

// Proves that the sink keeps to what a sink promises.
func TestSQLConformance(t *testing.T) {
	sinkstest.Run(t, suite(func() sinks.Sink[entry] {
		return &sinks.SQL[entry]{
			Statement: `insert into entry select id, account, amount from message`,
			Params: []sinks.Param[entry]{
				{Column: sinks.Col("id", id), Type: "int"},
				{Column: sinks.Col("account", account), Type: "int"},
				{Column: sinks.Col("amount", amountOf), Type: "numeric(12,2)"},
			},
		}
	}))
}

// A statement of one's own reads the batch as a relation.
func ExampleSQL() {
	fields := schema.NewFields("sku", "n")
	sink := &sinks.SQL[schema.Row]{
		Statement: `update stock set n = stock.n - m.n from message m where stock.sku = m.sku`,
		Params:    []sinks.Param[schema.Row]{{Column: sinks.Field("sku", "sku")}, {Column: sinks.Field("n", "n"), Type: "int"}},
	}

	run(`create table stock (sku text primary key, n int not null); insert into stock values ('bolt', 9), ('nut', 9)`,
		sink, fields, `select * from stock order by sku`, `1={"sku":"bolt","n":2}`, `2={"sku":"nut","n":"3"}`)
	// Output:
	// [bolt 7]
	// [nut 6]
}
