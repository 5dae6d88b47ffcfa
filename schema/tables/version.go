package tables

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
)

// versionTable holds a row for each migration that was applied.
const versionTable = "schema_version"

// Querier is what is needed of a connection: a *pgx.Conn, a *pgxpool.Pool or a
// pgx.Tx.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// VersionError says that the ledger's tables are not of the program's version.
type VersionError struct {
	// Schema is where the tables were looked for.
	Schema string
	// Have is the database's version, 0 where there are no tables; Want is the
	// program's.
	Have, Want int64
}

// Error names both versions and the remedy.
func (e *VersionError) Error() string {
	switch {
	case e.Have == 0:
		return fmt.Sprintf("schema %q has no oncestream tables (version 0) and this binary needs version %d: run \"oncestream migrate up\"",
			e.Schema, e.Want)
	case e.Have < e.Want:
		return fmt.Sprintf("the tables in schema %q are of version %d and this binary needs version %d: run \"oncestream migrate up\"",
			e.Schema, e.Have, e.Want)
	default:
		return fmt.Sprintf("the tables in schema %q are of version %d and this binary knows no version after %d: upgrade the binary",
			e.Schema, e.Have, e.Want)
	}
}

// Version returns the version of the tables that this program works with: that
// of its last migration.
func Version() int64 {
	var last int64
	for v := range ownMigrations() {
		last = max(last, v)
	}
	return last
}

// ownMigrations returns the names of this program's migrations by version. The
// errors cannot occur: the files are part of the program, and a test lists them.
func ownMigrations() map[int64]string {
	files, _ := fs.Glob(migrations, "migrations/*.sql")
	names := make(map[int64]string, len(files))
	for _, file := range files {
		v, _ := goose.NumericComponent(file)
		names[v] = path.Base(file)
	}
	return names
}

// Check returns nil where the tables in the schema are of this program's
// version. Where they are missing, older or newer the error is a
// [*VersionError]. It is for the start of a program and leaves a transaction
// that it is passed in order.
func Check(ctx context.Context, db Querier, schema string) error {
	have, err := versionOf(ctx, db, schema)
	if want := Version(); err == nil && have != want {
		err = &VersionError{Schema: schema, Have: have, Want: want}
	}
	if err != nil {
		return fmt.Errorf("tables: check the version: %w", err)
	}
	return nil
}

// versionOf asks the catalog first: to read the table and look at the error
// would abort the transaction that the caller may have passed.
func versionOf(ctx context.Context, db Querier, schema string) (int64, error) {
	there, err := hasVersions(ctx, db, schema)
	if err != nil || !there {
		return 0, err
	}
	var v int64
	table := pgx.Identifier{schema, versionTable}.Sanitize()
	err = db.QueryRow(ctx, "select coalesce(max(version_id), 0) from "+table+" where is_applied").Scan(&v)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", table, err)
	}
	return v, nil
}

func hasVersions(ctx context.Context, db Querier, schema string) (there bool, err error) {
	err = db.QueryRow(ctx, "select exists (select from pg_tables where schemaname = $1 and tablename = $2)",
		schema, versionTable).Scan(&there)
	return there, err
}
