package tables_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/schema/tables"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

func compare(t *testing.T, db tables.Beginner, o tables.DiffOptions) tables.Difference {
	t.Helper()
	d, err := tables.Diff(t.Context(), db, tables.Name{Table: "l"}, tables.Name{Table: "r"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func shown(v *string) string {
	if v == nil {
		return tablestest.Null
	}
	return *v
}

// described writes a difference as a test compares it.
func described(d tables.Difference) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d|%d missing %d extra %d different %d\n", d.LeftRows, d.RightRows, d.Missing, d.Extra, d.Different)
	for _, c := range d.Columns {
		fmt.Fprintf(&b, "column %s in %d lenient %v\n", c.Name, c.Rows, c.Lenient)
	}
	for _, e := range d.Examples {
		b.WriteString(e.Kind)
		for _, k := range e.Key {
			fmt.Fprintf(&b, " %s=%s", k.Name, shown(k.Value))
		}
		for _, c := range e.Columns {
			fmt.Fprintf(&b, " %s:%s|%s", c.Name, shown(c.Left), shown(c.Right))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func check(t *testing.T, d tables.Difference, want string) {
	t.Helper()
	if got := described(d); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

const sides = `create table l (id int primary key, amount numeric, note text, data json, at timestamptz);
create table r (like l including all);
insert into l values (1, 1.0, 'same', '{"a":1}', '2026-01-01Z'), (2, 2, null, null, '2026-01-01Z'), (3, 3, 'gone', null, null), (4, 4, null, null, '2026-01-01Z');
insert into r values (1, 1.0, 'same', '{"a":1}', '2026-01-01Z'), (2, 2.0, 'x', null, '2026-01-02Z'), (4, 4, null, null, '2026-01-02Z'), (5, 5, null, '[]', null)`

// Rows are paired by the primary key; a row that one side lacks and each column
// that differs are named, nulls equal, and a column without an operator for
// equality is compared.
func TestDiffByKey(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(sides)
	check(t, compare(t, db.Pool, tables.DiffOptions{}), `4|4 missing 1 extra 1 different 2
column amount in 1 lenient false
column at in 2 lenient false
column note in 1 lenient false
different id=2 amount:2|2.0 at:2026-01-01 00:00:00+00|2026-01-02 00:00:00+00 note:null|x
missing id=3 amount:3|null at:null|null data:null|null note:gone|null
different id=4 at:2026-01-01 00:00:00+00|2026-01-02 00:00:00+00
extra id=5 amount:null|5 at:null|null data:null|[] note:null|null
`)
	d := compare(t, db.Pool, tables.DiffOptions{Limit: -1, Lenient: []string{"at"}, Exclude: []string{"note"}})
	check(t, d, "4|4 missing 1 extra 1 different 1\ncolumn amount in 1 lenient false\ncolumn at in 2 lenient true\n")
	if d.None() || d.String() != `"`+db.Schema+`"."r": 1 missing, 1 extra, 1 different` {
		t.Error(d)
	}
	db.Exec("delete from r where id = 5; delete from l where id = 3; update r set amount = l.amount, note = l.note from l where l.id = r.id")
	if d := compare(t, db.Pool, tables.DiffOptions{Lenient: []string{"at"}}); !d.None() || len(d.Columns) != 1 || len(d.Examples) > 0 {
		t.Errorf("but for a lenient column: %s %v", d, d)
	}
}

// No more examples are given than were asked for, in the order of the key.
func TestDiffLimit(t *testing.T) {
	db := tablestest.New(t)
	db.Exec("create table l (a int, b text, primary key (a, b)); create table r (like l); insert into l select n, 'x' from generate_series(1, 100) n")
	db.Exec("alter table r add primary key (a, b)")
	d := compare(t, db.Pool, tables.DiffOptions{Limit: 2})
	check(t, d, "100|0 missing 100 extra 0 different 0\nmissing a=1 b=x\nmissing a=2 b=x\n")
	if got := len(compare(t, db.Pool, tables.DiffOptions{}).Examples); got != 10 {
		t.Errorf("%d examples by default", got)
	}
}

// Without a key, or with a key that is excluded, rows are compared as a
// multiset: as often as each side has them, null as itself.
func TestDiffMultiset(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table l (id int generated always as identity primary key, what text, n int);
		create table r (like l including all);
		insert into l (what, n) values ('a', 1), ('a', 1), ('b', null), ('c', 3);
		insert into r (what, n) values ('b', null), ('a', 1), ('d', 4), ('d', 4)`)
	want := "4|4 missing 2 extra 2 different 0\nmissing n=1 what=a\nmissing n=3 what=c\nextra n=4 what=d\n"
	check(t, compare(t, db.Pool, tables.DiffOptions{Exclude: []string{"id"}}), want)
	db.Exec("alter table l drop constraint l_pkey; alter table r drop constraint r_pkey")
	check(t, compare(t, db.Pool, tables.DiffOptions{Exclude: []string{"id"}}), want)
	check(t, compare(t, db.Pool, tables.DiffOptions{Lenient: []string{"id", "n"}}), "4|4 missing 2 extra 2 different 0\nmissing what=a\nmissing what=c\nextra what=d\n")
}

// A key can be named, also one that may be null; one that is not unique cannot.
func TestDiffNamedKey(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table l (id serial primary key, k text, kk numeric, v text); create table r (like l including all);
		insert into l (k, kk, v) values ('a', 1, 'x'), (null, 1, 'x'), ('c', null, 'x');
		insert into r (k, kk, v) values ('c', null, 'x'), (null, 1, 'y'), ('a', 1, 'x')`)
	check(t, compare(t, db.Pool, tables.DiffOptions{Key: []string{"k", "kk"}, Exclude: []string{"id"}}),
		"3|3 missing 0 extra 0 different 1\ncolumn v in 1 lenient false\ndifferent k=null kk=1 v:x|y\n")
	_, err := tables.Diff(t.Context(), db.Pool, tables.Name{Table: "l"}, tables.Name{Table: "r"}, tables.DiffOptions{Key: []string{"kk"}})
	if err == nil || !strings.Contains(err.Error(), "rows cannot be paired by (kk): it is not unique in "+`"`+db.Schema+`"."l"`) {
		t.Errorf("of a key that is not unique: %v", err)
	}
}

// Partitioned tables are compared as a whole, in a transaction that sees one
// moment and keeps its settings.
func TestDiffPartitionedInTransaction(t *testing.T) {
	db := tablestest.New(t)
	for _, name := range []string{"l", "r"} {
		db.Exec(strings.ReplaceAll("create table x (day date, v float8, primary key (day)) partition by range (day); create table x_1 partition of x default", "x", name))
	}
	db.Exec("insert into l values ('2026-01-01', 0.1); insert into r values ('2026-01-01', 0.1)")
	tx := begin(t, db)
	if _, err := tx.Exec(t.Context(), "set transaction isolation level repeatable read; set local timezone = 'Asia/Tokyo'; select 1 from l"); err != nil {
		t.Fatal(err)
	}
	db.Exec("insert into r values ('2026-01-02', 0.2)")
	check(t, compare(t, tx, tables.DiffOptions{}), "1|1 missing 0 extra 0 different 0\n")
	check(t, compare(t, db.Pool, tables.DiffOptions{}), "1|2 missing 0 extra 1 different 0\nextra day=2026-01-02 v:null|0.2\n")
	var zone string
	if err := tx.QueryRow(t.Context(), "show timezone").Scan(&zone); err != nil || zone != "Asia/Tokyo" {
		t.Errorf("the time zone is %s, %v", zone, err)
	}
}

// What cannot be compared is an error that names it.
func TestDiffErrors(t *testing.T) {
	db := tablestest.New(t)
	db.Exec("create table l (a int, b int); create table r (a int, c int)")
	l, r := tables.Name{Table: "l"}, tables.Name{Table: "r"}
	for want, call := range map[string]func() error{
		"the columns are not the same: a, b and a, c": func() error { _, err := tables.Diff(t.Context(), db.Pool, l, r, tables.DiffOptions{}); return err },
		`"nope": no such table`: func() error {
			_, err := tables.Diff(t.Context(), db.Pool, l, tables.Name{Table: "nope"}, tables.DiffOptions{})
			return err
		},
		`no column "x" to exclude`: func() error {
			_, err := tables.Diff(t.Context(), db.Pool, l, l, tables.DiffOptions{Exclude: []string{"x"}})
			return err
		},
		`no column "x" to pair rows by`: func() error {
			_, err := tables.Diff(t.Context(), db.Pool, l, l, tables.DiffOptions{Key: []string{"x"}})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
