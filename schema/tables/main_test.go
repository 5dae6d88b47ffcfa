package tables_test

import (
	"context"
	"testing"
	"time"

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

// waitFor waits until the query answers want.
func waitFor(t *testing.T, db *tablestest.DB, query, want string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for got := db.Value(query); got != want; got = db.Value(query) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s still answers %s, want %s", query, got, want)
		}
	}
}
