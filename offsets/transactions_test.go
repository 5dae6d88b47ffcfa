package offsets_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/embedded"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// The oldest open transaction is named, whatever kind it is, with who has it and
// since when; a younger one, an idle session and our own are not (case D17).
// A role that may not see since when still learns whose it is.
func TestOldestTransaction(t *testing.T) {
	server, err := embedded.Start(t.Context(), embedded.Options{Settings: map[string]string{"max_prepared_transactions": "2", "autovacuum": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	db := tablestest.New(t, tablestest.OnServer(server.URL("")))
	ledger := newLedger(t, db)
	db.Exec("create role clerk login; grant usage on schema " + db.Schema + " to clerk")
	open := func(application, user string) *pgx.Conn {
		cfg, err := pgx.ParseConfig(db.URL)
		if err != nil {
			t.Fatal(err)
		}
		cfg.RuntimeParams["application_name"], cfg.User = application, user
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	exec := func(conn *pgx.Conn, sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	oldest := func(as offsets.DB) offsets.Transaction {
		t.Helper()
		found, ok, err := ledger.OldestTransaction(t.Context(), as)
		if err != nil || ok != (found != offsets.Transaction{}) {
			t.Fatal(ok, err)
		}
		return found
	}

	open("idle", "postgres")
	if got := oldest(db.Pool); got != (offsets.Transaction{}) {
		t.Errorf("with nothing open there is %v", got)
	}
	report, young := open("nightly report", "postgres"), open("young", "postgres")
	exec(report, "begin isolation level repeatable read; select 1 from pg_class limit 1")
	if _, _, err := ledger.Claim(t.Context(), db.Pool, "A", offsets.Identity{}, []offsets.Assigned{{Partition: 0}}); err != nil {
		t.Fatal(err)
	}
	exec(young, "begin; create table young_one ()")
	got := oldest(db.Pool)
	if got.Kind != "session" || got.Application != "nightly report" || got.State != "idle in transaction" || got.User != "postgres" ||
		got.PID != int32(report.PgConn().PID()) || got.Held < 1 || got.Age <= 0 || time.Since(got.Started) > time.Minute { //nolint:gosec // a pid
		t.Errorf("the oldest is %+v", got)
	}
	if text := got.String(); !strings.Contains(text, `application "nightly report", state "idle in transaction", since 2`) {
		t.Errorf("it is called %s", text)
	}
	if hidden := oldest(open("clerk", "clerk")); hidden.PID != got.PID || hidden.Application != got.Application || !hidden.Started.IsZero() || hidden.Age != 0 || hidden.State != "" {
		t.Errorf("to another role it is %+v", hidden)
	}
	exec(report, "commit")
	if got := oldest(db.Pool); got.Application != "young" {
		t.Errorf("behind it comes %+v", got)
	}
	exec(young, "prepare transaction 'forgotten'")
	if got := oldest(db.Pool); got.Kind != "prepared transaction" || got.Name != "forgotten" || got.Started.IsZero() {
		t.Errorf("a prepared one is %+v", got)
	}
	exec(young, "rollback prepared 'forgotten'")
}

// What a vacuum cannot remove is counted: a dead row of the table of positions
// for each batch since the transaction began.
func TestOldestTransactionCountsDeadRows(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	claims, _, err := ledger.Claim(t.Context(), db.Pool, "A", offsets.Identity{}, []offsets.Assigned{{Partition: 0}})
	if err != nil {
		t.Fatal(err)
	}
	holder := begin(t, db)
	if _, err := holder.Exec(t.Context(), "set transaction isolation level repeatable read"); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "select count(*) from consumer_offset"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		tx := begin(t, db)
		if claims[0], err = ledger.Advance(t.Context(), tx, claims[0], offsets.Position{Next: claims[0].Next + 1}); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(time.Minute) // the server counts behind
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		got, found, err := ledger.OldestTransaction(t.Context(), db.Pool)
		if err != nil {
			t.Fatal(err)
		}
		if found && got.DeadRows >= 20 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the dead rows of 20 advances are %d", got.DeadRows)
		}
	}
}
