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

// defaultsSQL inserts as many rows of defaults alone as its parameter says.
func defaultsSQL(t *Table) string {
	return fmt.Sprintf("insert into %s\nselect from generate_series(1, $1::bigint)", t.ref())
}

// upsertSQL sets the given columns of a row that is there.
func upsertSQL(t *Table, targets []*target, set []string) string {
	var key, sets []string
	for _, target := range targets {
		if target.key {
			key = append(key, quote(target.Name))
		}
	}
	for _, name := range set {
		sets = append(sets, fmt.Sprintf("%s = excluded.%s", quote(name), quote(name)))
	}
	return insertSQL(t, targets) + conflict(key, sets)
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
func updateSQL(t *Table, targets []*target) string {
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
		t.ref(), strings.Join(sets, ", "), source(targets, true), matches(targets))
}

func deleteSQL(t *Table, key []*target) string {
	return fmt.Sprintf("delete from %s as t\nusing %s\nwhere %s", t.ref(), source(key, false), matches(key))
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
