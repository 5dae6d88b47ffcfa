package tables

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// pairs compares rows that are paired by their key: one full join for the
// counts, and where rows differ another for the examples.
func (c *comparison) pairs(ctx context.Context, tx pgx.Tx) (Difference, error) {
	d := Difference{Left: c.left, Right: c.right, Key: c.key}
	counts := make([]int64, len(c.others))
	targets := []any{&d.LeftRows, &d.RightRows, &d.Missing, &d.Extra, &d.Different}
	for i := range counts {
		targets = append(targets, &counts[i])
	}
	if err := tx.QueryRow(ctx, c.countSQL()).Scan(targets...); err != nil {
		return d, err
	}
	for i, name := range c.others {
		if counts[i] > 0 {
			d.Columns = append(d.Columns, ColumnDifference{Name: name, Rows: counts[i], Lenient: c.isLenient(name)})
		}
	}
	if d.None() || c.opts.Limit < 0 {
		return d, nil
	}
	var err error
	d.Examples, err = c.pairExamples(ctx, tx)
	return d, err
}

// A side without a row is known by its tableoid, which no row lacks.
const (
	onlyLeft  = "r.tableoid is null"
	onlyRight = "l.tableoid is null"
	both      = "l.tableoid is not null and r.tableoid is not null"
)

func (c *comparison) countSQL() string {
	items := []string{
		"count(*) filter (where l.tableoid is not null)", "count(*) filter (where r.tableoid is not null)",
		"count(*) filter (where " + onlyLeft + ")", "count(*) filter (where " + onlyRight + ")",
		"count(*) filter (where " + both + " and " + c.differs() + ")",
	}
	for _, name := range c.others {
		items = append(items, fmt.Sprintf("count(*) filter (where %s and %s)", both, differ(name)))
	}
	return "select " + strings.Join(items, ",\n\t") + c.joinSQL()
}

// differs is true of a pair that counts as different.
func (c *comparison) differs() string {
	var conditions []string
	for _, name := range c.others {
		if !c.isLenient(name) {
			conditions = append(conditions, differ(name))
		}
	}
	if len(conditions) == 0 {
		return "false"
	}
	return "(" + strings.Join(conditions, " or ") + ")"
}

// differ compares by text: not each type has an operator for equality.
func differ(column string) string {
	return fmt.Sprintf("%s is distinct from %s", textOf("l", column), textOf("r", column))
}

func textOf(side, column string) string { return side + "." + quoted(column) + "::text" }

// joinSQL pairs the rows. A full join needs an equality that can be hashed or
// merged; where a key may be null, its text is one.
func (c *comparison) joinSQL() string {
	var conditions []string
	for _, name := range c.key {
		conditions = append(conditions, fmt.Sprintf("l.%s = r.%[1]s", quoted(name)))
	}
	if c.nullable {
		conditions = []string{fmt.Sprintf("row(%s)::text = row(%s)::text", c.list("l"), c.list("r"))}
	}
	return fmt.Sprintf("\nfrom %s l full join %s r on %s", c.left, c.right, strings.Join(conditions, " and "))
}

// list is the key's columns of a side.
func (c *comparison) list(side string) string {
	names := make([]string, len(c.key))
	for i, name := range c.key {
		names[i] = side + "." + quoted(name)
	}
	return strings.Join(names, ", ")
}

// textsOf is an array of the columns' texts.
func textsOf(side string, columns []string) string {
	texts := make([]string, len(columns))
	for i, name := range columns {
		texts[i] = textOf(side, name)
	}
	return "array[" + strings.Join(texts, ", ") + "]::text[]"
}

func (c *comparison) pairExamples(ctx context.Context, tx pgx.Tx) ([]RowDifference, error) {
	order := make([]string, len(c.key))
	for i, name := range c.key {
		order[i] = fmt.Sprintf("coalesce(l.%s, r.%[1]s)", quoted(name))
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`select case when %s then 'missing' when %s then 'extra' else 'different' end,
	case when %[2]s then %[3]s else %[4]s end, %[5]s, %[6]s%[7]s
where %[1]s or %[2]s or %[8]s order by %[9]s limit %[10]d`,
		onlyLeft, onlyRight, textsOf("r", c.key), textsOf("l", c.key), textsOf("l", c.others), textsOf("r", c.others),
		c.joinSQL(), c.differs(), strings.Join(order, ", "), c.opts.Limit))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d RowDifference, err error) {
		var key, left, right []*string
		if err := row.Scan(&d.Kind, &key, &left, &right); err != nil {
			return d, err
		}
		d.Key = values(c.key, key)
		for i, name := range c.others {
			if d.Kind != KindDifferent || !equalTexts(left[i], right[i]) {
				d.Columns = append(d.Columns, ColumnValues{Name: name, Left: left[i], Right: right[i]})
			}
		}
		return d, nil
	})
}

func values(names []string, texts []*string) []ColumnValue {
	list := make([]ColumnValue, len(names))
	for i, name := range names {
		list[i] = ColumnValue{Name: name, Value: texts[i]}
	}
	return list
}

func equalTexts(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
