package tables

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Migration is one step of the tables' history.
type Migration struct {
	// Version is the version of the tables from this migration on.
	Version int64
	// Name is the file's name; empty where the program does not know the
	// migration, because the tables are newer than it.
	Name string
	// AppliedAt is when it was applied, in UTC by the database's clock; the zero
	// time where it is pending.
	AppliedAt time.Time
}

// Pending reports whether the migration has not been applied.
func (m Migration) Pending() bool { return m.AppliedAt.IsZero() }

// Status lists the migrations that the program or the database knows, by
// version. A schema that is missing is one where all are pending.
func Status(ctx context.Context, db Querier, schema string) ([]Migration, error) {
	applied, err := appliedTimes(ctx, db, schema)
	if err != nil {
		return nil, fmt.Errorf("tables: status of schema %q: %w", schema, err)
	}
	var list []Migration
	names := ownMigrations()
	for v, name := range names {
		list = append(list, Migration{Version: v, Name: name, AppliedAt: applied[v]})
	}
	for v, at := range applied {
		if _, known := names[v]; !known {
			list = append(list, Migration{Version: v, AppliedAt: at})
		}
	}
	slices.SortFunc(list, func(a, b Migration) int { return cmp.Compare(a.Version, b.Version) })
	return list, nil
}

// appliedTimes leaves out version 0, with which goose marks a new table.
func appliedTimes(ctx context.Context, db Querier, schema string) (map[int64]time.Time, error) {
	times := map[int64]time.Time{}
	there, err := hasVersions(ctx, db, schema)
	if err != nil || !there {
		return times, err
	}
	rows, err := db.Query(ctx, "select version_id, tstamp from "+pgx.Identifier{schema, versionTable}.Sanitize()+
		" where is_applied and version_id > 0")
	if err != nil {
		return nil, err
	}
	var v int64
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&v, &at}, func() error {
		times[v] = at
		return nil
	})
	return times, err
}
