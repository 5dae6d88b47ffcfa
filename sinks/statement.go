package sinks

import (
	"fmt"
	"strings"
)

// The text of the statements. Parameters are arrays, one for each column, so
// that a batch of any size is one statement with a few parameters; the text
// depends on the columns only, so that it is prepared once.

// source is `unnest($1::bigint[], …) as u(c1, …)`; ordinal adds the place n.
func source(targets []*target, ordinal bool) string {
	params := make([]string, len(targets))
	names := make([]string, len(targets), len(targets)+1)
	for i, t := range targets {
		params[i] = fmt.Sprintf("$%d::%s[]", i+1, t.carrier.name)
		names[i] = fmt.Sprintf("c%d", i+1)
	}
	with := ""
	if ordinal {
		with, names = " with ordinality", append(names, "n")
	}
	return fmt.Sprintf("unnest(%s)%s as u(%s)", strings.Join(params, ", "), with, strings.Join(names, ", "))
}

// value is the i-th value as it is assigned to its column.
func value(t *target, i int) string {
	if cast := t.cast(); cast != "" {
		return fmt.Sprintf("u.c%d::%s", i+1, cast)
	}
	return fmt.Sprintf("u.c%d", i+1)
}

func insertSQL(t *Table, targets []*target) string {
	names, values := make([]string, len(targets)), make([]string, len(targets))
	for i, target := range targets {
		names[i], values[i] = quote(target.Name), value(target, i)
	}
	return fmt.Sprintf("insert into %s as t (%s)\nselect %s\nfrom %s",
		t.ref(), strings.Join(names, ", "), strings.Join(values, ", "), source(targets, false))
}

// insertOnceSQL inserts the rows that meet no other and answers with the places
// of those that were not inserted: normally with nothing. RETURNING knows the row
// of the table only and not the one it came from, so the two are matched by the
// text of the columns that tell rows apart: those of the key, or all. Of rows
// that are the same, the first ones are those inserted, as in the order of the
// statement. A null place is a row that was inserted and matches none; it is the
// first in the answer, as 0, and is left out where every row was inserted. The
// rows are inserted in their order, or in that of the keys where it is asked for.
func insertOnceSQL(t *Table, targets []*target, rule ConflictRule, byKey bool) string {
	names, values := make([]string, len(targets)), make([]string, len(targets))
	var key, there, sent, order []string
	for i, target := range targets {
		names[i], values[i] = quote(target.Name), value(target, i)
		if rule == ConflictIgnore || target.key {
			there = append(there, "t."+names[i])
			sent = append(sent, fmt.Sprintf("%s::%s", values[i], target.Type))
		}
		if target.key {
			key = append(key, names[i])
		}
		if target.key && byKey {
			order = append(order, values[i])
		}
	}
	on := "on conflict"
	if rule == ConflictDuplicate {
		on += " " + list(key)
	}
	return fmt.Sprintf(`with u as (
	select * from %s
), inserted as (
	insert into %s as t (%s)
	select %s
	from u order by %s
	%s do nothing
	returning row(%s)::text as k
), there as (
	select k, row_number() over (partition by k) as i from inserted
), sent as (
	select u.n, s.k, row_number() over (partition by s.k order by u.n) as i
	from u cross join lateral (select row(%s)::text as k) as s
)
select coalesce(sent.n, 0)
from sent full join there using (k, i)
where (sent.n is null or there.i is null)
	and (select count(*) from inserted) < (select count(*) from u)
order by 1`,
		source(targets, true), t.ref(), strings.Join(names, ", "), strings.Join(values, ", "),
		strings.Join(append(order, "u.n"), ", "), on, strings.Join(there, ", "), strings.Join(sent, ", "))
}

// absentSQL answers with those of the given places whose key has no row. The
// places are the last parameter.
func absentSQL(t *Table, key []*target) string {
	return fmt.Sprintf("select u.n\nfrom %s\nwhere u.n = any ($%d::bigint[])\n\tand not exists (select from %s as t where %s)",
		source(key, true), len(key)+1, t.ref(), matches(key))
}

// defaultsSQL inserts as many rows of defaults alone as its parameter says.
func defaultsSQL(t *Table) string {
	return fmt.Sprintf("insert into %s\nselect from generate_series(1, $1::bigint)", t.ref())
}

// upsertSQL sets the given columns of a row that is there, unless its version is
// newer; version is empty where rows have none.
func upsertSQL(t *Table, targets []*target, set []string, version string) string {
	var key, sets []string
	for _, target := range targets {
		if target.key {
			key = append(key, quote(target.Name))
		}
	}
	for _, name := range set {
		sets = append(sets, fmt.Sprintf("%s = excluded.%s", quote(name), quote(name)))
	}
	where := ""
	if version != "" {
		where = "\nwhere " + notNewer(version, "excluded."+quote(version))
	}
	return insertSQL(t, targets) + conflict(key, sets) + where
}

// notNewer compares the version of the table's row.
func notNewer(version, with string) string {
	return fmt.Sprintf("(t.%[1]s is null or t.%[1]s <= %[2]s)", quote(version), with)
}

// sumSQL adds to the rows that are there. A null total counts as 0: null plus
// an amount would be null, and the amount lost.
func sumSQL(t *Table, targets []*target) string {
	var key, sets []string
	for _, target := range targets {
		name := quote(target.Name)
		switch {
		case target.key:
			key = append(key, name)
		case target.NotNull:
			sets = append(sets, fmt.Sprintf("%s = t.%s + excluded.%s", name, name, name))
		default:
			sets = append(sets, fmt.Sprintf("%s = coalesce(t.%s, 0) + excluded.%s", name, name, name))
		}
	}
	return insertSQL(t, targets) + conflict(key, sets)
}

func conflict(key, sets []string) string {
	do := "do nothing"
	if len(sets) > 0 {
		do = "do update set " + strings.Join(sets, ", ")
	}
	return fmt.Sprintf("\non conflict (%s) %s", strings.Join(key, ", "), do)
}

// updateSQL is for rows that must be there, because they lack a column that a
// new row needs. It answers with the places of the rows that were found.
func updateSQL(t *Table, targets []*target, version string) string {
	var sets []string
	for i, target := range targets {
		if !target.key {
			sets = append(sets, fmt.Sprintf("%s = %s", quote(target.Name), value(target, i)))
		}
	}
	if len(sets) == 0 { // nothing to set, but whether the row is there counts
		name := quote(targets[0].Name)
		sets = []string{fmt.Sprintf("%s = t.%s", name, name)}
	}
	return fmt.Sprintf("update %s as t\nset %s\nfrom %s\nwhere %s\nreturning u.n",
		t.ref(), strings.Join(sets, ", "), source(targets, true), matches(targets)+versioned(targets, version))
}

func deleteSQL(t *Table, targets []*target, version string) string {
	return fmt.Sprintf("delete from %s as t\nusing %s\nwhere %s",
		t.ref(), source(targets, false), matches(targets)+versioned(targets, version))
}

// lockSQL locks the rows of the keys in their order, and answers with the place
// of each and its version.
func lockSQL(t *Table, key []*target, version string) string {
	return fmt.Sprintf("select u.n, t.%s\nfrom %s\njoin %s as t on %s\norder by u.n\nfor update of t",
		quote(version), source(key, true), t.ref(), matches(key))
}

// versioned is the condition that the row is not newer than the parameters'.
func versioned(targets []*target, version string) string {
	for i, target := range targets {
		if version != "" && target.Name == version {
			return " and " + notNewer(version, value(target, i))
		}
	}
	return ""
}

// matches compares the keys of the table with those of the parameters.
func matches(targets []*target) string {
	var equal []string
	for i, target := range targets {
		if target.key {
			equal = append(equal, fmt.Sprintf("t.%s = %s", quote(target.Name), value(target, i)))
		}
	}
	return strings.Join(equal, " and ")
}

// openSQL makes the accounts that are not there yet, at 0. It runs before any
// account is locked: a worker that waits here holds no lock of another's.
func openSQL(t *Table, key []*target) string {
	return fmt.Sprintf("insert into %s as t (%s, %s, \"balance\")\nselect %s, %s, 0\nfrom %s\norder by u.n\non conflict (%s, %s) do nothing",
		t.ref(), quote(key[0].Name), quote(key[1].Name), value(key[0], 0), value(key[1], 1), source(key, true),
		quote(key[0].Name), quote(key[1].Name))
}

// balancesSQL locks the accounts in their order, and answers with the place of
// each and its balance. No key update: an entry may refer to its account by a
// foreign key without waiting.
func balancesSQL(t *Table, key []*target) string {
	return fmt.Sprintf("select u.n, t.\"balance\"::text\nfrom %s\njoin %s as t on %s\norder by u.n\nfor no key update of t",
		source(key, true), t.ref(), matches(key))
}

// entriesSQL appends two rows for each transfer, of which the second is the
// first turned round.
func entriesSQL(t *Table, targets []*target) string {
	names, values := make([]string, len(targets)), make([]string, len(targets))
	for i, target := range targets {
		names[i], values[i] = quote(target.Name), value(target, i)
	}
	from, to, amount := values[ledgerFrom], values[ledgerTo], values[ledgerAmount]
	values[ledgerFrom], values[ledgerTo], values[ledgerAmount] = "s.account", "s.counter_account", "s.amount"
	return fmt.Sprintf("insert into %s as t (%s)\nselect %s\nfrom %s\ncross join lateral (values (1, %s, %s, -%s), (2, %s, %s, %s)) as s(side, account, counter_account, amount)\norder by u.n, s.side",
		t.ref(), strings.Join(names, ", "), strings.Join(values, ", "), source(targets, true),
		from, to, amount, to, from, amount)
}
