package sinks

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// constraints are what a table may refuse a row for, as far as a query can tell
// before the row is written. Keys are in [Table.UniqueKeys].
type constraints struct {
	checks  []check
	foreign []foreignKey
}

// check is a check constraint: an expression, and the columns that it reads.
type check struct {
	expression string
	columns    []string
}

// foreignKey is a foreign key: the columns, and those they must be found in.
type foreignKey struct {
	columns []string
	table   string // quoted, with its schema
	found   []string
}

// constraintsOf reads the constraints of a table. It leaves out a foreign key to
// the table itself, which the batch may satisfy, and a check of whole rows.
func constraintsOf(ctx context.Context, conn *pgx.Conn, table uint32) (c constraints, err error) {
	rows, err := conn.Query(ctx, `
		select pg_get_expr(c.conbin, c.conrelid), `+columnNames("c.conrelid", "c.conkey")+`
		from pg_constraint c
		where c.conrelid = $1 and c.contype = 'c' and 0 < all (c.conkey)
		order by c.conname`, table)
	if err != nil {
		return c, err
	}
	c.checks, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (k check, err error) {
		err = row.Scan(&k.expression, &k.columns)
		return k, err
	})
	if err != nil {
		return c, err
	}
	rows, err = conn.Query(ctx, `
		select n.nspname::text, r.relname::text, `+columnNames("c.conrelid", "c.conkey")+`, `+columnNames("c.confrelid", "c.confkey")+`
		from pg_constraint c
		join pg_class r on r.oid = c.confrelid
		join pg_namespace n on n.oid = r.relnamespace
		where c.conrelid = $1 and c.contype = 'f' and c.confmatchtype = 's' and c.confrelid <> c.conrelid
		order by c.conname`, table)
	if err != nil {
		return c, err
	}
	c.foreign, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (k foreignKey, err error) {
		var name pgx.Identifier = make([]string, 2)
		err = row.Scan(&name[0], &name[1], &k.columns, &k.found)
		k.table = name.Sanitize()
		return k, err
	})
	return c, err
}

// columnNames is SQL for the names of a table's columns by their numbers.
func columnNames(table, numbers string) string {
	return `(
			select array_agg(a.attname::text order by k.place)
			from unnest(` + numbers + `) with ordinality as k (number, place)
			join pg_attribute a on a.attrelid = ` + table + ` and a.attnum = k.number)`
}
