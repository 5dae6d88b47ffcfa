package tables

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Activity is how many rows of a table were written.
type Activity struct {
	Table    Name  `json:"table"`
	Inserted int64 `json:"inserted"`
	Updated  int64 `json:"updated"`
	Deleted  int64 `json:"deleted"`
}

// Since returns what was written after an earlier look.
func (a Activity) Since(earlier Activity) Activity {
	a.Inserted -= earlier.Inserted
	a.Updated -= earlier.Updated
	a.Deleted -= earlier.Deleted
	return a
}

// Plus adds up what was written.
func (a Activity) Plus(more Activity) Activity {
	a.Inserted += more.Inserted
	a.Updated += more.Updated
	a.Deleted += more.Deleted
	return a
}

// None reports whether nothing was written.
func (a Activity) None() bool { return a.Inserted == 0 && a.Updated == 0 && a.Deleted == 0 }

// Activities returns what the session has written lately, in each table, as the
// statistics count it (PostgreSQL manual, section 28.2.3): also what was rolled
// back, and maybe some of what earlier transactions did. So it is the difference
// of two looks within one transaction that says something. The server must have
// track_counts on, its default.
func Activities(ctx context.Context, tx pgx.Tx) ([]Activity, error) {
	var counts bool
	if err := tx.QueryRow(ctx, "select current_setting('track_counts')::bool").Scan(&counts); err != nil {
		return nil, fmt.Errorf("tables: count what is written: %w", err)
	}
	if !counts {
		return nil, errors.New("tables: count what is written: the server does not count: set track_counts = on for the role, or in postgresql.conf")
	}
	rows, err := tx.Query(ctx, `select schemaname::text, relname::text, n_tup_ins, n_tup_upd, n_tup_del
		from pg_catalog.pg_stat_xact_user_tables where n_tup_ins + n_tup_upd + n_tup_del > 0 order by 1, 2`)
	if err != nil {
		return nil, fmt.Errorf("tables: count what is written: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Activity, err error) {
		err = row.Scan(&a.Table.Schema, &a.Table.Table, &a.Inserted, &a.Updated, &a.Deleted)
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("tables: count what is written: %w", err)
	}
	return list, nil
}
