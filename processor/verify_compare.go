package processor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oncestream/oncestream/schema/tables"
)

// difference is how a table differs from that of the reference.
type difference struct {
	table  string
	ledger bool // one of the ledger's tables
	rows   tables.Difference
	// columns are those that blameColumns has found; rows is what is left then.
	columns     []tables.Column
	left, right tables.Name
}

// ledgerState are the ledger's tables that belong to the effects, with the
// columns that are not compared: of a dead letter it counts which record it is,
// and of a record with two faults either may be told.
var ledgerState = map[string][]string{
	"processed_message": {"processed_at"},
	"dead_letter": {
		"id", "created_at", "reason", "detail", "column_name", "sqlstate", "constraint_name", "consumer_group", "topic_id", "handler", "headers",
		"record_key", "record_value", "value_size", "record_time", "state", "resolved_at", "resolution", "fixed_value",
	},
}

// excludedByName are the columns of a table that the caller has excluded.
func (v *verification) excludedByName(table string) []string {
	var names []string
	for _, name := range v.opts.Exclude {
		if t, column, _ := strings.Cut(name, "."); t == table && !slices.Contains(names, column) {
			names = append(names, column)
		}
	}
	return names
}

// excluded are the columns of a table that are not compared: by name, and those
// that were named as hidden input.
func (v *verification) excluded(table string) []string {
	names := v.excludedByName(table)
	for _, h := range v.hidden {
		if h.table == table && !slices.Contains(names, h.Name) {
			names = append(names, h.Name)
		}
	}
	return names
}

// compare returns how the tables of a run differ from those of the reference.
func (v *verification) compare(ctx context.Context, s *scratch) ([]difference, error) {
	var found []difference
	for i, left := range v.reference.tables {
		d, same, err := v.compareRows(ctx, left, s.tables[i])
		if err != nil {
			return nil, err
		}
		if !same {
			found = append(found, d)
		}
	}
	for _, table := range []string{"dead_letter", "processed_message"} {
		left, right := tables.Name{Schema: v.reference.ledger, Table: table}, tables.Name{Schema: s.ledger, Table: table}
		same, err := v.sameDigest(ctx, left, right, ledgerState[table])
		if err == nil && !same {
			var rows tables.Difference
			rows, err = tables.Diff(ctx, v.shop.conn, left, right, tables.DiffOptions{Exclude: ledgerState[table], Limit: shownRows})
			found = append(found, difference{table: "the ledger's " + table, ledger: true, rows: rows})
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// shownRows is how many rows of a table that differ are shown.
const shownRows = 3

// sameDigest compares two tables.
func (v *verification) sameDigest(ctx context.Context, left, right tables.Name, exclude []string) (same bool, err error) {
	l, err := tables.Digest(ctx, v.shop.conn, left, tables.DigestOptions{Exclude: exclude})
	if err != nil {
		return false, err
	}
	r, err := tables.Digest(ctx, v.shop.conn, right, tables.DigestOptions{Exclude: exclude})
	return l == r, err
}

// compareRows compares a table row by row, without the columns that are excluded.
func (v *verification) compareRows(ctx context.Context, left, right tables.Name) (d difference, same bool, err error) {
	exclude := v.excluded(left.Table)
	same, err = v.sameDigest(ctx, left, right, exclude)
	if err != nil || same {
		return d, same, err
	}
	rows, err := tables.Diff(ctx, v.shop.conn, left, right, tables.DiffOptions{Exclude: exclude, Limit: shownRows})
	return difference{table: left.Table, left: left, right: right, rows: rows}, false, err
}

// blameColumns looks for columns that a difference can be put down to: first
// those whose values are others by themselves, as a key drawn from a sequence is,
// by which no rows could be paired; then those in which pairs of rows differ.
func (v *verification) blameColumns(ctx context.Context, d *difference) error {
	if d.ledger {
		return nil
	}
	exclude := v.excluded(d.table)
	columns, err := tables.Columns(ctx, v.shop.conn, d.left)
	if err != nil {
		return err
	}
	columns = slices.DeleteFunc(columns, func(c tables.Column) bool { return slices.Contains(exclude, c.Name) })
	if d.rows.LeftRows == d.rows.RightRows {
		if d.columns, err = v.otherValues(ctx, d.left, d.right, columns, exclude); err != nil {
			return err
		}
	}
	for _, c := range d.columns {
		exclude = append(exclude, c.Name)
	}
	d.rows, err = tables.Diff(ctx, v.shop.conn, d.left, d.right, tables.DiffOptions{Exclude: exclude, Limit: shownRows})
	if err != nil || d.rows.Missing > 0 || d.rows.Extra > 0 {
		return err
	}
	for _, c := range columns {
		if slices.ContainsFunc(d.rows.Columns, func(in tables.ColumnDifference) bool { return in.Name == c.Name }) {
			d.columns = append(d.columns, c)
		}
	}
	d.rows.Different = 0
	return nil
}

// otherValues returns the columns whose values, taken alone and in any order, are
// not the same.
func (v *verification) otherValues(ctx context.Context, left, right tables.Name, columns []tables.Column, exclude []string) ([]tables.Column, error) {
	var others []tables.Column
	for i, c := range columns {
		hide := slices.Clone(exclude)
		for j := range columns {
			if j != i {
				hide = append(hide, columns[j].Name)
			}
		}
		same, err := v.sameDigest(ctx, left, right, hide)
		if err != nil {
			return nil, err
		}
		if !same {
			others = append(others, c)
		}
	}
	return others, nil
}

// lines tells how rows differ, and shows the first of them.
func (d *difference) lines() []string {
	lines := []string{fmt.Sprintf("%s: %d rows missing, %d extra, %d different, of %d", d.table, d.rows.Missing, d.rows.Extra, d.rows.Different, d.rows.LeftRows)}
	for _, e := range d.rows.Examples {
		lines = append(lines, d.table+": "+rowLine(e))
	}
	return lines
}

// rowLine tells of one row: what names it, and each column before and after.
func rowLine(e tables.RowDifference) string {
	var b strings.Builder
	b.WriteString(e.Kind)
	for _, k := range e.Key {
		fmt.Fprintf(&b, " %s=%s", k.Name, valueText(k.Value))
	}
	if e.Kind != tables.KindDifferent {
		return b.String()
	}
	for i, c := range e.Columns {
		fmt.Fprintf(&b, "%s%s is %s, not %s", []string{": ", "; "}[min(i, 1)], c.Name, valueText(c.Right), valueText(c.Left))
	}
	return b.String()
}

func valueText(v *string) string {
	switch {
	case v == nil:
		return "null"
	case len(*v) > maxValueText:
		return strings.ToValidUTF8((*v)[:maxValueText], "") + "…"
	}
	return *v
}

const maxValueText = 40
