package tables_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema/tables"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Keys are found in their order, and columns that another run fills otherwise
// by what their defaults call.
func TestKeysOf(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create function stamp() returns timestamptz language sql volatile as 'select clock_timestamp()';
		create table keyed (id bigint generated always as identity primary key, event uuid not null unique default gen_random_uuid(),
			a int not null, b int not null default 1 + abs(-1), c int, at timestamptz default now(), day date default current_date, no serial, label text default upper('x'),
			mine timestamptz default stamp(), d numeric generated always as (a * 2) stored, unique (a, b), unique (a, c), plain text);
		create unique index on keyed (label) where a > 1;
		create unique index on keyed (lower(label))`)
	k, err := tables.KeysOf(t.Context(), db.Pool, tables.Name{Table: "keyed"})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(fmt.Sprint(k.Primary, k.Unique, k.Volatile), db.Schema+".", "")
	want := "[id] [[event] [a b]] [{id identity} {event gen_random_uuid()} {at now()} {day CURRENT_DATE} {no nextval('keyed_no_seq'::regclass)} {mine stamp()}]"
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// What a transaction writes is the difference of two looks, whatever its session
// did before.
func TestActivities(t *testing.T) {
	db := tablestest.New(t)
	db.Exec("create table a (id int); create table b (id int); insert into b values (1), (2)")
	conn, err := pgx.ConnectConfig(t.Context(), config(t, db))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "insert into a values (1)"); err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	look := func() map[string]tables.Activity {
		list, err := tables.Activities(t.Context(), tx)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]tables.Activity{}
		for _, a := range list {
			found[a.Table.Table] = a
		}
		return found
	}
	before := look()
	if _, err := tx.Exec(t.Context(), "insert into a values (2), (3); update a set id = 4 where id = 2; delete from b"); err != nil {
		t.Fatal(err)
	}
	after := look()
	if a := after["a"].Since(before["a"]); a.Inserted != 2 || a.Updated != 1 || a.Deleted != 0 || a.None() {
		t.Errorf("a: %+v", a)
	}
	if b := after["b"].Since(before["b"]); b.Deleted != 2 || b.Table.Schema != db.Schema {
		t.Errorf("b: %+v", b)
	}
	if _, err := tx.Exec(t.Context(), "set track_counts = off"); err != nil {
		t.Fatal(err)
	}
	if _, err := tables.Activities(t.Context(), tx); err == nil || !strings.Contains(err.Error(), "track_counts") {
		t.Errorf("of a server that does not count: %v", err)
	}
}

// What is frozen stays as the transaction saw it, in a schema that can be dropped.
func TestFreeze(t *testing.T) {
	db := tablestest.New(t)
	db.Exec("create table a (id int primary key, twice int generated always as (id * 2) stored); insert into a values (1)")
	into, conn := scratch(t, db)
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select 1 from a"); err != nil {
		t.Fatal(err)
	}
	db.Exec("insert into a values (2)")
	if err := tables.Freeze(t.Context(), tx, into, []tables.Name{{Schema: db.Schema, Table: "a"}}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := db.Dump("select * from " + into + ".a"); got != "id  twice\n1   2\n" {
		t.Errorf("frozen:\n%s", got)
	}
	if err := tables.DropSchema(t.Context(), conn, into); err != nil {
		t.Error(err)
	}
}
