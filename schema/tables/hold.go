package tables

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/jackc/pgx/v5"
)

// TryHold takes a lock on a name for the session, and reports whether it has it:
// another session that lives may. It is how a scratch schema that is in use is
// told from one that was left behind.
func TryHold(ctx context.Context, conn *pgx.Conn, name string) (held bool, err error) {
	if err = conn.QueryRow(ctx, "select pg_try_advisory_lock($1)", holdID(name)).Scan(&held); err != nil {
		err = fmt.Errorf("tables: hold %q: %w", name, err)
	}
	return held, err
}

// LetGo gives up the lock of TryHold.
func LetGo(ctx context.Context, conn *pgx.Conn, name string) error {
	if _, err := conn.Exec(ctx, "select pg_advisory_unlock($1)", holdID(name)); err != nil {
		return fmt.Errorf("tables: let go of %q: %w", name, err)
	}
	return nil
}

func holdID(name string) int64 {
	h := fnv.New64a()
	h.Write([]byte("oncestream hold " + name))
	return int64(h.Sum64())
}

// SearchPath returns the schemas in which the session looks for a bare name, but
// for PostgreSQL's own, in order.
func SearchPath(ctx context.Context, db Querier) (schemas []string, err error) {
	if err = db.QueryRow(ctx, "select current_schemas(false)::text[]").Scan(&schemas); err != nil {
		err = fmt.Errorf("tables: read the search path: %w", err)
	}
	return schemas, err
}

// ServerVersion returns the version of the server, such as 15.7.
func ServerVersion(ctx context.Context, db Querier) (version string, err error) {
	if err = db.QueryRow(ctx, "select split_part(current_setting('server_version'), ' ', 1)").Scan(&version); err != nil {
		err = fmt.Errorf("tables: read the server's version: %w", err)
	}
	return version, err
}

// Column is a column of a table.
type Column struct {
	Name string
	// Category is the kind of its type as PostgreSQL sorts types: D for dates and
	// times, N for numbers, S for texts (manual, section 53.64).
	Category string
	// Drawn says that an identity or a default gives it the next number of a
	// sequence.
	Drawn bool
}

// Columns returns the columns of the table, in their order.
func Columns(ctx context.Context, db Querier, table Name) ([]Column, error) {
	rows, err := db.Query(ctx, `select a.attname::text, t.typcategory::text,
			a.attidentity <> '' or coalesce(pg_get_expr(d.adbin, d.adrelid) like '%nextval(%', false)
		from pg_attribute a join pg_type t on t.oid = a.atttypid left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
		where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped order by a.attnum`, table.String())
	if err != nil {
		return nil, fmt.Errorf("tables: list the columns of %s: %w", table, err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Column])
	if err != nil {
		return nil, fmt.Errorf("tables: list the columns of %s: %w", table, err)
	}
	return columns, nil
}
