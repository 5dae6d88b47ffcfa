package sinks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Describe reads what the catalog says of the named table, partitioned table,
// foreign table or view. The name may be qualified by a schema. Each part is
// taken as it is written, never folded to lower case, with or without double
// quotes: Order and "Order" both mean the table that SQL calls "Order"; quotes
// are needed only around a part that contains a dot.
//
// The error of a missing table names the search_path and the nearest table.
func Describe(ctx context.Context, conn *pgx.Conn, name string) (*Table, error) {
	parts, err := splitName(name)
	if err != nil {
		return nil, err
	}
	t := &Table{}
	var oid uint32
	var kind string
	err = conn.QueryRow(ctx, `
		select c.oid, n.nspname::text, c.relname::text, c.relkind::text
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.oid = to_regclass($1)`, pgx.Identifier(parts).Sanitize()).
		Scan(&oid, &t.Schema, &t.Name, &kind)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, missingTable(ctx, conn, name, parts[len(parts)-1])
	}
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", name, err)
	}
	if !slices.Contains([]string{"r", "p", "f", "v"}, kind) {
		return nil, fmt.Errorf("%s is no table that can be written to", name)
	}
	if t.Columns, err = columnsOf(ctx, conn, oid); err != nil {
		return nil, fmt.Errorf("describe the columns of %s: %w", name, err)
	}
	if t.UniqueKeys, err = uniqueKeysOf(ctx, conn, oid); err != nil {
		return nil, fmt.Errorf("describe the indexes of %s: %w", name, err)
	}
	if t.constraints, err = constraintsOf(ctx, conn, oid); err != nil {
		return nil, fmt.Errorf("describe the constraints of %s: %w", name, err)
	}
	if t.copying, err = copyingOf(ctx, conn, oid); err != nil {
		return nil, fmt.Errorf("describe whether %s can be copied into: %w", name, err)
	}
	return t, nil
}

// splitName returns the parts of a table's name without their quotes.
func splitName(name string) ([]string, error) {
	var parts []string
	for rest := name; ; {
		part, tail, err := cutPart(rest)
		if err != nil || part == "" {
			return nil, fmt.Errorf("%q is no name of a table: want table or schema.table, double quotes around a part that contains a dot", name)
		}
		parts = append(parts, part)
		if tail == "" {
			break
		}
		rest = tail[1:]
	}
	if len(parts) > 2 {
		return nil, fmt.Errorf("%q has %d parts: a table's name has at most a schema before it", name, len(parts))
	}
	return parts, nil
}

var errPart = errors.New("malformed")

// cutPart splits off the first part; tail is empty or begins with the dot.
func cutPart(s string) (part, tail string, err error) {
	if !strings.HasPrefix(s, `"`) {
		if i := strings.IndexByte(s, '.'); i >= 0 {
			return s[:i], s[i:], nil
		}
		return s, "", nil
	}
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			i++
			continue
		}
		part, tail = strings.ReplaceAll(s[1:i], `""`, `"`), s[i+1:]
		if tail != "" && tail[0] != '.' {
			return "", "", errPart
		}
		return part, tail, nil
	}
	return "", "", errPart
}

func missingTable(ctx context.Context, conn *pgx.Conn, name, last string) error {
	var path string
	var names []string
	err := conn.QueryRow(ctx, `
		select current_setting($1), coalesce((
			select array_agg(c.relname::text order by c.relname)
			from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where n.nspname = any (current_schemas(false)) and c.relkind in ('r', 'p', 'f', 'v')), '{}')`,
		"search_path").Scan(&path, &names)
	if err != nil {
		return fmt.Errorf("no table %s; asking for the nearest one failed: %w", name, err)
	}
	near := meant(name, names) // a dot may have been part of the name
	if near == "" {
		near = meant(last, names)
	}
	return fmt.Errorf("no table %s with search_path %s%s", name, path, near)
}

// columnsOf reads the columns of a table.
func columnsOf(ctx context.Context, conn *pgx.Conn, table uint32) ([]TableColumn, error) {
	return unfold(ctx, conn, `
		select a.attnum::int, a.attname::text, a.atttypid, a.atttypmod, a.attnotnull,
			(a.atthasdef and a.attgenerated = '') or a.attidentity <> '',
			a.attgenerated <> '' or a.attidentity = 'a'
		from pg_attribute a
		where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped`, table)
}

// unfold unfolds the domains of the columns that seed selects: a domain's base
// decides how a value travels, and the domain's own checks are made by
// PostgreSQL when the row is written. The base type is printed with the modifier
// -1 rather than null, as bpchar and not character, which in SQL would mean
// character(1).
func unfold(ctx context.Context, conn *pgx.Conn, seed string, args ...any) ([]TableColumn, error) {
	rows, err := conn.Query(ctx, `
		with recursive seed (place, name, type, mod, not_null, has_default, generated) as (`+seed+`),
		unfolded as (
			select s.*, format_type(s.type, s.mod) as declared, 0 as depth from seed s
			union all
			select u.place, u.name, t.typbasetype, case when t.typtypmod >= 0 then t.typtypmod else u.mod end,
				u.not_null or t.typnotnull, u.has_default or t.typdefault is not null, u.generated, u.declared, u.depth + 1
			from unfolded u join pg_type t on t.oid = u.type
			where t.typtype = 'd'
		)
		select distinct on (u.place) u.name, u.declared, u.type, format_type(u.type, -1), u.mod,
			t.typcategory = 'A', t.typtype = 'e', u.not_null, u.has_default, u.generated,
			case when t.typcategory = 'A' then t.typelem else 0 end
		from unfolded u join pg_type t on t.oid = u.type
		order by u.place, u.depth desc`, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c TableColumn, err error) {
		err = row.Scan(&c.Name, &c.Type, &c.BaseOID, &c.BaseType, &c.Mod,
			&c.Array, &c.Enum, &c.NotNull, &c.HasDefault, &c.Generated, &c.ElemOID)
		return c, err
	})
}

// uniqueKeysOf leaves out what ON CONFLICT cannot infer: partial indexes,
// indexes over expressions, deferrable constraints.
func uniqueKeysOf(ctx context.Context, conn *pgx.Conn, table uint32) ([][]string, error) {
	rows, err := conn.Query(ctx, `
		select (
			select array_agg(a.attname::text order by k.place)
			from unnest(i.indkey::int2[]) with ordinality as k(attnum, place)
			join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
			where k.place <= i.indnkeyatts)
		from pg_index i
		where i.indrelid = $1 and i.indisunique and i.indisvalid and i.indimmediate
			and i.indpred is null and i.indexprs is null
		order by i.indisprimary desc, i.indexrelid`, table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[[]string])
}
