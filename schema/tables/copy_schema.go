package tables

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// scratchMark begins the comment by which a scratch schema is known, so that no
// other is ever dropped, and one that a killed process has left is found.
const scratchMark = "oncestream scratch schema"

// ErrNotScratch says that a schema was not made by CreateScratch, so that it is
// neither filled nor dropped.
var ErrNotScratch = errors.New("the schema exists, and oncestream has not made it as a scratch schema")

// CreateScratch creates a schema for copies and marks it, by a comment, as one
// that [DropSchema] may drop. One that exists and is marked is left as it is; one
// that is not marked is an error, ErrNotScratch.
func CreateScratch(ctx context.Context, conn *pgx.Conn, name string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return createScratch(ctx, tx, name) })
}

func createScratch(ctx context.Context, tx pgx.Tx, name string) error {
	exists, scratch, err := lookAtSchema(ctx, tx, name)
	switch {
	case err != nil:
		return err
	case scratch:
		return nil
	case exists:
		return fmt.Errorf("schema %q: %w", name, ErrNotScratch)
	}
	if _, err := tx.Exec(ctx, "create schema "+quoted(name)); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "comment on schema "+quoted(name)+" is "+quotedText(scratchMark+": it can be dropped with all that is in it"))
	return err
}

// IsScratch reports whether there is a schema of the name, and whether it is
// marked as one of CreateScratch.
func IsScratch(ctx context.Context, db Querier, name string) (exists, scratch bool, err error) {
	if exists, scratch, err = lookAtSchema(ctx, db, name); err != nil {
		err = fmt.Errorf("tables: look at schema %q: %w", name, err)
	}
	return exists, scratch, err
}

func lookAtSchema(ctx context.Context, db Querier, name string) (exists, scratch bool, err error) {
	err = db.QueryRow(ctx, `select true, coalesce(obj_description(oid, 'pg_namespace'), '') like $2 from pg_namespace where nspname = $1`,
		name, scratchMark+"%").Scan(&exists, &scratch)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, false, nil
	}
	return exists, scratch, err
}

// Scratches lists the scratch schemas of the database whose names begin with the
// prefix, by name.
func Scratches(ctx context.Context, db Querier, prefix string) ([]string, error) {
	rows, err := db.Query(ctx, `select nspname::text from pg_namespace
		where starts_with(nspname::text, $1) and coalesce(obj_description(oid, 'pg_namespace'), '') like $2 order by 1`, prefix, scratchMark+"%")
	if err != nil {
		return nil, fmt.Errorf("tables: list the scratch schemas: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("tables: list the scratch schemas: %w", err)
	}
	return names, nil
}

// DropSchema drops scratch schemas with all that is in them, all or none. One
// that is not there is passed over; one that CreateScratch has not made is never
// dropped, but an error, ErrNotScratch.
func DropSchema(ctx context.Context, conn *pgx.Conn, names ...string) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, name := range names {
			if err := dropSchema(ctx, tx, name); err != nil {
				return fmt.Errorf("schema %q: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("tables: drop: %w", err)
	}
	return nil
}

func dropSchema(ctx context.Context, tx pgx.Tx, name string) error {
	exists, scratch, err := lookAtSchema(ctx, tx, name)
	switch {
	case err != nil:
		return err
	case !exists:
		return nil
	case !scratch:
		return ErrNotScratch
	}
	_, err = tx.Exec(ctx, "drop schema "+quoted(name)+" cascade")
	return err
}

// ParseNames reads names of tables, as "table" or "schema.table"; no part may hold
// a dot.
func ParseNames(texts []string) []Name {
	var names []Name
	for _, text := range texts {
		n := Name{Table: text}
		if schema, table, ok := strings.Cut(text, "."); ok {
			n = Name{Schema: schema, Table: table}
		}
		names = append(names, n)
	}
	return names
}

// LedgerTables returns the names of the ledger's tables, as the migrations make
// them, sorted.
func LedgerTables() []string {
	names := []string{versionTable}
	files, _ := fs.Glob(migrations, "migrations/*.sql") // both errors cannot occur, see ownMigrations
	for _, file := range files {
		text, _ := fs.ReadFile(migrations, file)
		for _, match := range regexp.MustCompile(`(?m)^create table (\w+)`).FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	slices.Sort(names)
	return names
}
