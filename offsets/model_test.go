package offsets_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// TestModel holds the ledger to a model of it: workers claim, steal, batch, crash,
// lose answers and misjudge them, and the database goes back to a snapshot. Each
// answer must be the model's, and after each step each record that was passed has
// been passed once, no key has two effects, no offset has fallen, and the account
// adds up.
func TestModel(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(worldTables)
	ledger := newLedger(t, db)
	conns := connections(t, db, simWorkers)
	rapid.Check(t, func(t *rapid.T) {
		choose := func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(t, what) }
		s := newSimulation(t.Context(), db, ledger, conns, choose)
		s.oracle = newOracle()
		if err := s.run(t.Context(), 40); err != nil {
			t.Fatal(err)
		}
	})
}

func newLedger(tb testing.TB, db *tablestest.DB) *offsets.Ledger {
	tb.Helper()
	l := offsets.New(offsets.Options{Schema: db.Schema, Group: "shop", Topic: "orders"})
	if err := l.Register(tb.Context(), db.Pool); err != nil {
		tb.Fatal(err)
	}
	return l
}

func connections(t *testing.T, db *tablestest.DB, n int) []*pgx.Conn {
	t.Helper()
	conns := make([]*pgx.Conn, n)
	for i := range conns {
		conn, err := pgx.Connect(t.Context(), db.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(t.Context()) })
		conns[i] = conn
	}
	return conns
}
