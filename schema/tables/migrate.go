package tables

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Applied is a migration that Migrate applied.
type Applied struct {
	// Version is the version of the tables from this migration on.
	Version int64
	// Name is the file's name.
	Name string
	// Took is how long it ran.
	Took time.Duration
}

// Migrate brings the ledger's tables in the schema up to the version this
// program knows and returns what it applied, in order; nothing where nothing
// was missing. It creates the schema where there is none, for which the role
// needs CREATE on the database. Each migration is a transaction of its own, so
// that after an error the ones returned stand.
//
// Programs that migrate the same schema at once take turns. A pooler is refused:
// the migrations need a session that keeps its settings, so cfg must reach the
// server itself. The error is a [*VersionError] where the tables are newer than
// the program.
func Migrate(ctx context.Context, cfg *pgx.ConnConfig, schema string) ([]Applied, error) {
	applied, err := migrate(ctx, cfg, schema)
	if err != nil {
		return applied, fmt.Errorf("tables: migrate schema %q: %w", schema, err)
	}
	return applied, nil
}

func migrate(ctx context.Context, cfg *pgx.ConnConfig, schema string) (applied []Applied, err error) {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if err := refusePooler(ctx, conn); err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
		if err := lock(ctx, tx, schema); err != nil {
			return err
		}
		applied, err = up(ctx, tx, cfg, schema)
		return err
	})
	return applied, err
}

// refusePooler knows a pooler by the number of the process that answers, which
// is not the one that was told at the start.
func refusePooler(ctx context.Context, conn *pgx.Conn) error {
	var pid uint32
	if err := conn.QueryRow(ctx, "select pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid); err != nil {
		return err
	}
	if pid != conn.PgConn().PID() {
		return errors.New("a pooler stands before the database, and may give the migrations another session each time: connect to the server itself")
	}
	return nil
}

// lock waits for the migrations of others. The lock is the transaction's, which
// is open until all is done, so that nothing can leave it behind; the server must
// not end that for its silence. It comes first: two sessions that both find no
// schema would both create it, and one would fail. That is why it is not goose's
// lock, which is taken later and asks again by the second instead of waiting in
// line.
func lock(ctx context.Context, tx pgx.Tx, schema string) error {
	if _, err := tx.Exec(ctx, "set local idle_in_transaction_session_timeout = 0"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", lockID(schema)); err != nil {
		return fmt.Errorf("wait for another migration: %w", err)
	}
	return nil
}

// up applies what is missing, by sessions of its own, under the lock that tx
// holds.
func up(ctx context.Context, tx pgx.Tx, cfg *pgx.ConnConfig, schema string) (_ []Applied, err error) {
	db := openDB(cfg, schema)
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := createSchema(ctx, db, schema); err != nil {
		return nil, err
	}
	have, err := versionOf(ctx, tx, schema)
	if want := Version(); err == nil && have > want {
		err = &VersionError{Schema: schema, Have: have, Want: want}
	}
	if err != nil {
		return nil, err
	}
	provider, err := newProvider(db)
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	if partial, ok := errors.AsType[*goose.PartialError](err); ok {
		results = partial.Applied
	}
	return appliedOf(results), err
}

// createSchema looks first: "create schema if not exists" asks for the right to
// create even where the schema is there.
func createSchema(ctx context.Context, db *sql.DB, schema string) error {
	var there bool
	err := db.QueryRowContext(ctx, "select exists (select from pg_namespace where nspname = $1)", schema).Scan(&there)
	if err != nil || there {
		return err
	}
	_, err = db.ExecContext(ctx, "create schema "+pgx.Identifier{schema}.Sanitize())
	return err
}

// lockID is a number of the schema's own, so that the schemas of one database
// do not wait for each other.
func lockID(schema string) int64 {
	h := fnv.New64a()
	h.Write([]byte("oncestream migrate " + schema))
	return int64(h.Sum64())
}

// openDB returns a pool whose sessions find the ledger's tables by their bare
// names, which is how the migrations name them. The time zone is for the
// version table, whose column is a timestamp without one.
func openDB(cfg *pgx.ConnConfig, schema string) *sql.DB {
	return stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "set timezone = 'UTC'"); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "set search_path = "+pgx.Identifier{schema}.Sanitize())
		return err
	}))
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()))
}

func appliedOf(results []*goose.MigrationResult) []Applied {
	var list []Applied
	for _, r := range results {
		list = append(list, Applied{Version: r.Source.Version, Name: path.Base(r.Source.Path), Took: r.Duration})
	}
	return list
}
