package sinks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

type reporter interface {
	ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[schema.Row]) ([]schema.Outcome, error)
}

// reported applies the batch and tells what was said of it: a letter for each
// message, d for a duplicate, s for a stale one; nothing where nothing was said.
func reported(tb testing.TB, db *tablestest.DB, sink sinks.Sink[schema.Row], batch []schema.Message[schema.Row]) (said string, err error) {
	tb.Helper()
	err = pgx.BeginFunc(tb.Context(), db.Pool, func(tx pgx.Tx) error {
		outcomes, err := sink.(reporter).ApplyReport(tb.Context(), tx, batch)
		for _, o := range outcomes {
			switch {
			case o.Duplicate:
				said += "d"
			case o.Stale:
				said += "s"
			case o.Result != nil:
				said += string(o.Result)
			default:
				said += "."
			}
		}
		return err
	})
	return said, err
}

func mustReport(tb testing.TB, db *tablestest.DB, sink sinks.Sink[schema.Row], batch []schema.Message[schema.Row], want string) {
	tb.Helper()
	said, err := reported(tb, db, sink, batch)
	if err != nil {
		tb.Fatal(err)
	}
	equal(tb, said, want)
}

// Proves the constraint as backstop: a row that is there already by the key's columns
// makes its message a duplicate, in any type, also twice within a batch and in
// several shapes, and the other rows are written.
func TestInsertDuplicate(t *testing.T) {
	for _, c := range []struct{ kind, there, again, fresh string }{
		{"int", `1`, `1`, `2`},
		{"text", `"a"`, `"a"`, `"A"`},
		{"numeric", `1.5`, `1.50`, `1.6`},
		{"numeric(12,3)", `1.5`, `1.500`, `1.6`},
		{"char(5)", `"a"`, `"a  "`, `"b"`},
		{"inet", `"10.0.0.1"`, `"10.0.0.1/32"`, `"10.0.0.2"`},
		{"uuid", `"0198c0de-0000-7000-8000-000000000001"`, `"0198C0DE-0000-7000-8000-000000000001"`, `"0198c0de-0000-7000-8000-000000000002"`},
		{"timestamptz(0)", `"2026-01-02T03:04:05Z"`, `"2026-01-02T04:04:05+01:00"`, `"2026-01-02T03:04:06Z"`},
		{"double precision", `0`, `-0.0`, `0.1`},
		{"bytea", `"\\x00"`, `"\\000"`, `"\\x01"`},
	} {
		t.Run(c.kind, func(t *testing.T) {
			db := tablestest.New(t)
			db.Exec(fmt.Sprintf(`create table d (k %s unique, v text default 'none', at int generated always as identity)`, c.kind))
			fields := schema.NewFields("k", "v")
			sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields, KeyFields: []string{"k"}}))
			mustReport(t, db, sink, batch(t, fields, `1={"k":`+c.there+`,"v":"first"}`), "")
			mustReport(t, db, sink, batch(t, fields,
				`1={"k":`+c.fresh+`,"v":"x"}`, `1={"k":`+c.again+`,"v":"y"}`, `1={"k":`+c.fresh+`}`, `1={"k":`+c.there+`}`), ".ddd")
			equal(t, compact(db, `select v from d order by at`), "first x")
		})
	}
}

// Proves that only the key's own constraint makes a duplicate: another one stays
// an error with its name.
func TestInsertDuplicateOtherConstraint(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int primary key, email text constraint d_email unique)`)
	fields := schema.NewFields("id", "email")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields, KeyFields: []string{"id"}}))
	mustApply(t, db, sink, batch(t, fields, `1={"id":1,"email":"a"}`))
	mustReport(t, db, sink, batch(t, fields, `1={"id":1,"email":"b"}`), "d")
	_, err := reported(t, db, sink, batch(t, fields, `2={"id":2,"email":"a"}`))
	equal(t, sqlstate(t, err), "23505")
	if !strings.Contains(err.Error(), "d_email") {
		t.Errorf("the constraint is not named: %v", err)
	}
}

// Proves that ignore takes any constraint, also such as no key tells of, and
// finds the messages that were left out.
func TestInsertIgnore(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (at int generated always as identity, email text not null, note json, amount numeric(12,2), tags numeric(5,1)[], small varchar(3));
		create unique index on d (lower(email))`)
	fields := schema.NewFields("email", "note", "amount", "tags", "small")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields, OnConflict: sinks.ConflictIgnore}))
	mustReport(t, db, sink, batch(t, fields, `1={"email":"a@x","amount":1}`), "")
	mustReport(t, db, sink, batch(t, fields,
		`1={"email":"b@x","note":{"a": 1},"amount":1.5,"tags":[1,null],"small":"abc"}`,
		`1={"email":"B@x","note":{"a": 1},"amount":1.5,"tags":[1,null],"small":"abc"}`,
		`1={"email":"b@x","note":{"a": 1},"amount":1.5,"tags":[1,null],"small":"abc"}`,
		`1={"email":"A@X"}`, `1={"email":"","note":null}`, `1={"email":"c@x","small":""}`, `1={"email":"c@x"}`,
	), ".ddd..d")
	equal(t, compact(db, `select email, coalesce(small, '-') from d order by at`), "a@x,- b@x,abc ,- c@x,")
}

// Proves that rows without a column are told too.
func TestInsertIgnoreDefaults(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int default 7 unique)`)
	fields := schema.NewFields("id")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields, OnConflict: sinks.ConflictIgnore}))
	mustReport(t, db, sink, batch(t, fields, `1={}`, `2={}`, `3={"id":8}`), ".d.")
}

// Proves that a trigger which drops or changes rows does not make duplicates of
// messages that have no effect: that would lose them.
func TestInsertDuplicateAndTriggers(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int primary key);
		create function drop_row() returns trigger language plpgsql as 'begin return null; end';
		create function change_row() returns trigger language plpgsql as 'begin new.id := new.id + 100; return new; end';
		create trigger t before insert on d for each row execute function drop_row()`)
	fields := schema.NewFields("id")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields, KeyFields: []string{"id"}}))
	_, err := reported(t, db, sink, batch(t, fields, `1={"id":1}`))
	if err == nil || !strings.Contains(err.Error(), "no row of its key") {
		t.Errorf("a row that a trigger dropped: got %v", err)
	}
	db.Exec(`drop trigger t on d; create trigger t before insert on d for each row execute function change_row()`)
	mustReport(t, db, sink, batch(t, fields, `1={"id":1}`), "")
	_, err = reported(t, db, sink, batch(t, fields, `1={"id":2}`, `1={"id":1}`))
	if err == nil || !strings.Contains(err.Error(), "a trigger of the table changes") {
		t.Errorf("a row that a trigger changed: got %v", err)
	}
}

// Proves that a key column is never null or left out: it would meet no row.
func TestInsertDuplicateNeedsKey(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int unique default 5, v int)`)
	fields := schema.NewFields("id", "v")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields, KeyFields: []string{"id"}}))
	for _, payload := range []string{`{"v":1}`, `{"id":null}`} {
		equal(t, faultOf(t, apply(t, db, sink, batch(t, fields, "1="+payload))), "0 not_null id id")
	}
}

// Proves which rule is taken, and what Prepare refuses.
func TestInsertOnConflictConfiguration(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int primary key, a text, b text, unique (a, b)); create table free (id int)`)
	columns := []sinks.Column[schema.Row]{sinks.Field("id", "id"), sinks.Field("a", "$topic"), sinks.Field("b", "x.b")}
	for _, c := range []struct {
		keys []string
		rule sinks.ConflictRule
		want string
	}{
		{nil, "", "accumulate"},
		{[]string{"id"}, "", "insert-once"},
		{[]string{"id"}, sinks.ConflictError, "accumulate"},
		{[]string{"x.b", "$topic"}, "", "insert-once"},
		{[]string{"x.b"}, "", "accumulate"},
		{nil, sinks.ConflictIgnore, "insert-once"},
		{nil, "skip", `sinks: insert d: on_conflict "skip" is none of error, duplicate and ignore`},
		{nil, sinks.ConflictDuplicate, `sinks: insert d: on_conflict duplicate: no KeyFields: they say which columns the idempotency key is in; add it, or set on_conflict to error`},
		{[]string{"x.b"}, sinks.ConflictDuplicate, `sinks: insert d: on_conflict duplicate: no unique index on (b) of table d; there is one on (id) and one on (a, b); add it, or set on_conflict to error`},
		{[]string{"y"}, sinks.ConflictDuplicate, `sinks: insert d: on_conflict duplicate: no column is written from y, of which the idempotency key is made; add it, or set on_conflict to error`},
	} {
		sink := &sinks.Insert[schema.Row]{Table: "d", Columns: columns, KeyFields: c.keys, OnConflict: c.rule}
		got := fmt.Sprint(prepare(t, db, sinks.Sink[schema.Row](sink)))
		if got == "<nil>" {
			got = string(sinks.KindOf(sink))
		}
		equal(t, got, c.want)
	}
}

// Proves that two workers which insert the same keys at once store each once,
// and that each message is fresh for exactly one of them.
func TestInsertDuplicateConcurrent(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int primary key)`)
	fields := schema.NewFields("id")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields, KeyFields: []string{"id"}}))
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf(`%d={"id":%d}`, i, i))
	}
	messages := batch(t, fields, lines...)
	said := make(chan string, 4)
	for range cap(said) {
		go func() {
			s, err := reported(t, db, sink, messages)
			said <- s + fmt.Sprint(err)
		}()
	}
	fresh := 0
	for range cap(said) {
		s := strings.TrimSuffix(<-said, "<nil>")
		if s == "" {
			s = strings.Repeat(".", len(messages))
		}
		fresh += strings.Count(s, ".")
		if len(s) != len(messages) {
			t.Fatal(s)
		}
	}
	equal(t, fmt.Sprint(fresh, " ", db.Value(`select count(*) from d`)), "200 200")
}
