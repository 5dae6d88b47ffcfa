package tables

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Written lists the tables and sequences that the transaction has written to, or
// could have: those of which it holds a lock that a writer takes, by schema and
// name. It is exact for each transaction, also for one that changed no row; the
// counts of the statistics are neither, and know no sequences. Tables of
// PostgreSQL itself and temporary ones are left out.
func Written(ctx context.Context, tx pgx.Tx) ([]Name, error) {
	rows, err := tx.Query(ctx, `select distinct n.nspname::text, c.relname::text
		from pg_catalog.pg_locks l join pg_catalog.pg_class c on c.oid = l.relation join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where l.locktype = 'relation' and l.pid = pg_catalog.pg_backend_pid() and l.granted
			and l.database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
			and l.mode not in ('AccessShareLock', 'RowShareLock', 'SIReadLock')
			and c.relkind in ('r', 'p', 'f', 'm', 'S') and c.relpersistence <> 't' and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
		order by 1, 2`)
	if err != nil {
		return nil, fmt.Errorf("tables: list what was written to: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Name])
	if err != nil {
		return nil, fmt.Errorf("tables: list what was written to: %w", err)
	}
	return names, nil
}
