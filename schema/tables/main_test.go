package tables_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

func TestMain(m *testing.M) { tablestest.Main(m) }

func config(t *testing.T, db *tablestest.DB) *pgx.ConnConfig {
	t.Helper()
	cfg, err := pgx.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func begin(t *testing.T, db *tablestest.DB) pgx.Tx {
	t.Helper()
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}
