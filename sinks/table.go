package sinks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Table is what PostgreSQL's catalog says of a table; see [Describe].
type Table struct {
	// Schema and Name are the table's own, unquoted.
	Schema, Name string
	// Columns are the table's columns in their order, dropped ones left out.
	Columns []TableColumn
	// UniqueKeys are the column sets that an upsert can hit: those of unique
	// constraints and indexes that are valid, not partial, not deferrable and
	// made of plain columns.
	UniqueKeys [][]string

	constraints constraints
	copying     copying
}

// TableColumn is one column of a [Table].
type TableColumn struct {
	// Name is the column's name, unquoted.
	Name string
	// Type is the declared type as PostgreSQL prints it: "numeric(12,2)".
	Type string
	// BaseOID, BaseType and Mod are the type that is left after domains are
	// unfolded, without and with its modifier (-1: none): the oid of numeric,
	// "numeric", and the precision and scale as pg_attribute.atttypmod has it.
	BaseOID  uint32
	BaseType string
	Mod      int32
	// Domain is the domain that a parameter of a [SQL] is cast to, empty for any
	// other type and for all columns: there the assignment checks the domain.
	Domain string
	// Array and Enum tell of the base type.
	Array, Enum bool
	// ElemOID is the type of an array's elements, of which Mod is the modifier;
	// 0 where the column is no array.
	ElemOID uint32
	// NotNull is true where the column or its domain refuses null.
	NotNull bool
	// HasDefault is true where a row that leaves the column out gets another
	// value than null: a default, an identity, or its domain's default.
	HasDefault bool
	// Generated is true where PostgreSQL refuses a value: a generated column,
	// or an identity column that is "always".
	Generated bool
}

// Column returns the named column and whether there is one. Names are taken as
// they are: "Id" is not "id".
func (t *Table) Column(name string) (TableColumn, bool) {
	i := slices.IndexFunc(t.Columns, func(c TableColumn) bool { return c.Name == name })
	if i < 0 {
		return TableColumn{}, false
	}
	return t.Columns[i], true
}

// Unique returns nil if exactly the given columns, in any order, have a unique
// index that ON CONFLICT can use. The error otherwise names the unique indexes
// that there are. PostgreSQL would say so with the first batch only (42P10).
func (t *Table) Unique(columns ...string) error {
	for _, key := range t.UniqueKeys {
		if sameSet(key, columns) {
			return nil
		}
	}
	msg := fmt.Sprintf("no unique index on %s of table %s", list(columns), t.Name)
	if len(t.UniqueKeys) == 0 {
		return fmt.Errorf("%s, nor any other one", msg)
	}
	there := make([]string, len(t.UniqueKeys))
	for i, key := range t.UniqueKeys {
		there[i] = list(key)
	}
	return fmt.Errorf("%s; there is one on %s", msg, strings.Join(there, " and one on "))
}

// writable returns the named column, or an error that says why it cannot be
// written.
func (t *Table) writable(name string) (TableColumn, error) {
	c, ok := t.Column(name)
	switch {
	case name == "":
		return c, errors.New("a column without a name")
	case !ok:
		return c, fmt.Errorf("no column %q in table %s%s", name, t.Name, meant(name, t.columnNames()))
	case c.Generated:
		return c, fmt.Errorf("column %q of table %s is generated always and cannot be written", name, t.Name)
	}
	return c, nil
}

func (t *Table) columnNames() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// ref is the table as a statement writes it. The schema is always written, so
// that what was described is what is written to, whatever the search_path.
func (t *Table) ref() string {
	return t.identifier().Sanitize()
}

func (t *Table) identifier() pgx.Identifier {
	if t.Schema == "" {
		return pgx.Identifier{t.Name}
	}
	return pgx.Identifier{t.Schema, t.Name}
}

// digits returns the precision and scale of a numeric column, and false where
// it has none. A scale may be negative (PostgreSQL 15).
func (c *TableColumn) digits() (precision, scale int, ok bool) {
	if c.BaseOID != pgtype.NumericOID || c.Mod < 4 {
		return 0, 0, false
	}
	mod := c.Mod - 4
	return int(mod >> 16 & 0xffff), int(mod&0x7ff^0x400) - 0x400, true
}

// length returns the limit of a varchar or char column in characters.
func (c *TableColumn) length() (int, bool) {
	return int(c.Mod - 4), c.Mod >= 4
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// list writes "(a, b)".
func list(names []string) string { return "(" + strings.Join(names, ", ") + ")" }

func sameSet(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	return !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
}
