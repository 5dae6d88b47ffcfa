package tables_test

import (
	"strings"
	"testing"

	"github.com/oncestream/oncestream/schema/tables"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

func digest(t *testing.T, db tables.Beginner, table string, exclude ...string) tables.TableDigest {
	t.Helper()
	d, err := tables.Digest(t.Context(), db, tables.Name{Table: table}, tables.DigestOptions{Exclude: exclude})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Rows in any order, columns in any order, and with what time of insertion,
// have one digest.
func TestDigestSame(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table a (id int, name text, at timestamptz default clock_timestamp());
		create table b (at timestamptz default clock_timestamp(), name text, gone int, id int);
		alter table b drop column gone;
		insert into a (id, name) values (1, 'x'), (2, null), (1, 'x');
		insert into b (id, name) values (1, 'x'), (1, 'x');
		insert into b (id, name) values (2, null);
		update b set id = id`)
	a, b := digest(t, db.Pool, "a", "at"), digest(t, db.Pool, "b", "at")
	if a != b || a.Rows != 3 || len(a.Sum) != 32 {
		t.Errorf("a is %s, b is %s", a, b)
	}
	if digest(t, db.Pool, "a") == a {
		t.Error("the excluded column did not count either way")
	}
}

// What differs in a row's number, a value, a null, a column or a border
// between columns has another digest.
func TestDigestDiffers(t *testing.T) {
	db := tablestest.New(t)
	variants := []string{
		"select 1 where false",
		"select 'a' as x, 'b' as y where false",
		"select 'a' as x, 'b' as y",
		"select 'b' as x, 'a' as y",
		"select 'a' as x, 'b' as z",
		"select 'ab' as x, '' as y",
		"select 'ab' as x, null::text as y",
		"select 'a,b' as x, '' as y",
		"select 'a' as x, 'b' as y from generate_series(1, 2)",
		"select 'a' as x, 'b' as y from generate_series(1, 3)",
		"select 'c' as x, 'b' as y from generate_series(1, 2)",
		"values ('a', 'b'), ('c', 'd')",
		"values ('a', 'd'), ('c', 'b')",
		"values (1.50)",
		"values (1.5)",
	}
	seen := map[tables.TableDigest]string{}
	for _, v := range variants {
		db.Exec("create table v as " + v)
		d := digest(t, db.Pool, "v")
		if other, ok := seen[d]; ok {
			t.Errorf("%q and %q have one digest, %s", v, other, d)
		}
		seen[d] = v
		db.Exec("drop table v")
	}
}

// The digest does not depend on the session's settings, and gives them back to
// a transaction that it was passed.
func TestDigestOfAnySession(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table v as select now() as at, interval '1 day 2 hours' as lasts, 0.1::float8 + 0.2 as f,
		'\x00ff'::bytea as b, 12.5::money as m, 'consumer_offset'::regclass as r, date '2026-01-02' as d`)
	want := digest(t, db.Pool, "v")
	name := tables.Name{Schema: db.Schema, Table: "v"}
	tx := begin(t, db)
	if _, err := tx.Exec(t.Context(), `set timezone = 'Asia/Tokyo'; set datestyle = 'German'; set extra_float_digits = -3;
		set intervalstyle = 'iso_8601'; set bytea_output = 'escape'; set search_path = ''`); err != nil {
		t.Fatal(err)
	}
	if got, err := tables.Digest(t.Context(), tx, name, tables.DigestOptions{}); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	var zone string
	if err := tx.QueryRow(t.Context(), "show timezone").Scan(&zone); err != nil || zone != "Asia/Tokyo" {
		t.Errorf("the session's time zone is now %s, %v", zone, err)
	}
}

// A name is taken as spelled; what is not there is an error that names it; rows
// that would be hidden are an error too.
func TestDigestErrors(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table "Odd ""name" ("Col ""umn" int)`)
	odd := tables.Name{Schema: db.Schema, Table: `Odd "name`}
	if _, err := tables.Digest(t.Context(), db.Pool, odd, tables.DigestOptions{Exclude: []string{`Col "umn`}}); err != nil {
		t.Error(err)
	}
	_, err := tables.Digest(t.Context(), db.Pool, odd, tables.DigestOptions{Exclude: []string{"nope"}})
	if err == nil || !strings.Contains(err.Error(), `no column "nope"`) {
		t.Errorf("of a column that is not there: %v", err)
	}
	_, err = tables.Digest(t.Context(), db.Pool, tables.Name{Table: "nope"}, tables.DigestOptions{})
	if err == nil || !strings.Contains(err.Error(), `"nope": no such table`) {
		t.Errorf("of a table that is not there: %v", err)
	}

	role := db.Schema
	db.Exec("create table v as select 1 as x; alter table v enable row level security; create role " + role +
		"; grant usage on schema " + db.Schema + " to " + role + "; grant select on v to " + role)
	t.Cleanup(func() { db.Exec("drop owned by " + role + "; drop role " + role) })
	tx := begin(t, db)
	if _, err := tx.Exec(t.Context(), "set local role "+role); err != nil {
		t.Fatal(err)
	}
	_, err = tables.Digest(t.Context(), tx, tables.Name{Table: "v"}, tables.DigestOptions{})
	if err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("of hidden rows: %v", err)
	}
}
