package tables

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// DiffOptions says what is compared and what is shown.
type DiffOptions struct {
	// Limit is how many examples are given. Defaults to 10; below 0 for none.
	Limit int
	// Key names the columns by which rows are paired. They must be unique in both
	// tables. Defaults to the primary key of Right; where there is none, rows are
	// not paired, see [Diff].
	Key []string
	// Unpaired leaves rows unpaired although there is a primary key.
	// Defaults to false.
	Unpaired bool
	// Exclude names columns that are not compared. Defaults to none.
	Exclude []string
	// Lenient names columns that are compared and told of in Columns, but whose
	// difference alone does not make a row different. Defaults to none.
	Lenient []string
}

// Difference is how two tables differ.
type Difference struct {
	// Left and Right are the tables, with their schemas.
	Left  Name `json:"left"`
	Right Name `json:"right"`
	// Key names the columns by which rows were paired, none where they were not.
	Key []string `json:"key"`
	// LeftRows and RightRows are how many rows there are.
	LeftRows  int64 `json:"left_rows"`
	RightRows int64 `json:"right_rows"`
	// Missing is how many rows of Left Right lacks, Extra how many Right has
	// beyond those of Left, Different how many pairs differ in a column.
	Missing   int64 `json:"missing"`
	Extra     int64 `json:"extra"`
	Different int64 `json:"different"`
	// Columns are the columns in which pairs differ.
	Columns []ColumnDifference `json:"columns"`
	// Examples are the first rows that differ, in the order of their key.
	Examples []RowDifference `json:"examples"`
}

// ColumnDifference is a column in which pairs of rows differ.
type ColumnDifference struct {
	// Name is the column's.
	Name string `json:"name"`
	// Rows is how many pairs differ in it.
	Rows int64 `json:"rows"`
	// Lenient says that they do not count for it, see DiffOptions.
	Lenient bool `json:"lenient"`
}

// The kinds of RowDifference.
const (
	KindMissing   = "missing"
	KindExtra     = "extra"
	KindDifferent = "different"
)

// RowDifference is a row that differs.
type RowDifference struct {
	// Kind is KindMissing, KindExtra or KindDifferent.
	Kind string `json:"kind"`
	// Key identifies the row. Where rows are not paired it holds all columns.
	Key []ColumnValue `json:"key"`
	// Columns are those that differ of a pair, or all but the key of a row that
	// has none.
	Columns []ColumnValues `json:"columns"`
}

// ColumnValue is a column's value as PostgreSQL writes it, nil for null.
type ColumnValue struct {
	Name  string  `json:"name"`
	Value *string `json:"value"`
}

// ColumnValues is a column's value on either side, nil for null, and for a side
// that has no row.
type ColumnValues struct {
	Name  string  `json:"name"`
	Left  *string `json:"left"`
	Right *string `json:"right"`
}

// None reports whether the tables have the same rows, but for columns that were
// excluded or are lenient.
func (d Difference) None() bool { return d.Missing == 0 && d.Extra == 0 && d.Different == 0 }

// String is the difference in one line.
func (d Difference) String() string {
	if d.None() {
		return fmt.Sprintf("%s: no difference in %d rows", d.Right, d.RightRows)
	}
	return fmt.Sprintf("%s: %d missing, %d extra, %d different", d.Right, d.Missing, d.Extra, d.Different)
}

// Diff compares the rows of two tables that have the same columns, in the
// database. Values are compared by their text, so that 1.0 and 1.00 differ, and
// null equals null.
//
// Rows are paired by their key. Where there is none they are compared as a
// multiset: a row that one side has more often is missing or extra as often, and
// none is different. To compare several tables as of one moment, pass a
// transaction that is repeatable read.
func Diff(ctx context.Context, db Beginner, left, right Name, o DiffOptions) (Difference, error) {
	d, err := diff(ctx, db, left, right, o)
	if err != nil {
		return Difference{}, fmt.Errorf("tables: compare %s with %s: %w", left, right, err)
	}
	return d, nil
}

func diff(ctx context.Context, db Beginner, left, right Name, o DiffOptions) (d Difference, err error) {
	if o.Limit == 0 {
		o.Limit = defaultExamples
	}
	tx, err := db.Begin(ctx)
	if err != nil {
		return d, err
	}
	// As in digest, this gives the caller's session its settings back.
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	c := comparison{left: left, right: right, opts: o}
	if err := c.look(ctx, tx); err != nil {
		return d, err
	}
	if _, err := tx.Exec(ctx, pinSQL); err != nil {
		return d, err
	}
	if len(c.key) == 0 {
		return c.multiset(ctx, tx)
	}
	return c.pairs(ctx, tx)
}

const defaultExamples = 10

// comparison is one run of Diff.
type comparison struct {
	left, right Name
	opts        DiffOptions
	key, others []string // columns; others are compared
	nullable    bool     // a column of the key may be null
}

// look completes the names, and finds the columns and the key.
func (c *comparison) look(ctx context.Context, tx pgx.Tx) error {
	columns, err := columnsOf(ctx, tx, &c.right, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", c.right, err)
	}
	theirs, err := columnsOf(ctx, tx, &c.left, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", c.left, err)
	}
	if !slices.Equal(columns, theirs) {
		return fmt.Errorf("the columns are not the same: %s and %s", strings.Join(theirs, ", "), strings.Join(columns, ", "))
	}
	for what, names := range map[string][]string{"exclude": c.opts.Exclude, "compare leniently": c.opts.Lenient, "pair rows by": c.opts.Key} {
		for _, name := range names {
			if !slices.Contains(columns, name) {
				return fmt.Errorf("no column %q to %s (columns: %s)", name, what, strings.Join(columns, ", "))
			}
		}
	}
	if err := c.findKey(ctx, tx); err != nil {
		return err
	}
	c.others = slices.DeleteFunc(columns, func(name string) bool {
		return slices.Contains(c.key, name) || slices.Contains(c.opts.Exclude, name)
	})
	return nil
}

// findKey takes the key that was named, which must be unique, or the primary one.
func (c *comparison) findKey(ctx context.Context, tx pgx.Tx) error {
	c.key, c.nullable = c.opts.Key, len(c.opts.Key) > 0
	if c.opts.Unpaired {
		c.key = nil
		return nil
	}
	if len(c.key) == 0 {
		err := tx.QueryRow(ctx, `select array(select a.attname::text from unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
				join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
				where k.place <= i.indnkeyatts order by k.place)
			from pg_index i where i.indrelid = to_regclass($1) and i.indisprimary`, c.right.String()).Scan(&c.key)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if slices.ContainsFunc(c.key, func(name string) bool { return slices.Contains(c.opts.Exclude, name) }) {
			c.key = nil
		}
		return nil
	}
	for _, table := range []Name{c.left, c.right} {
		var twice bool
		list := pgx.Identifier(c.key)
		by := make([]string, len(list))
		for i, name := range list {
			by[i] = quoted(name)
		}
		err := tx.QueryRow(ctx, fmt.Sprintf("select exists (select from %s group by %s having count(*) > 1)", table, strings.Join(by, ", "))).Scan(&twice)
		if err != nil {
			return err
		}
		if twice {
			return fmt.Errorf("rows cannot be paired by (%s): it is not unique in %s", strings.Join(c.key, ", "), table)
		}
	}
	return nil
}

func (c *comparison) isLenient(column string) bool { return slices.Contains(c.opts.Lenient, column) }
