package main

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema/tables/embedded"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Proves that deadlocks and serialization failures cost a second attempt and
// nothing else (case D03): two instances add to the same two keys in opposite
// orders, while a rival locks them the wrong way round, and the totals are exact.
func TestCaseDeadlocks(t *testing.T) {
	w := newCaseWorld(t, "testdata/cases/D03")
	one, other := w.background(), w.background()
	w.rival(5)
	w.waitFor(`select sum(next_offset) from consumer_offset`, "40000")
	one.finish()
	other.finish()
	w.value(`select string_agg(k || ' ' || n, ', ' order by k) from cnt`, "A 20000, B 20000")
	w.value(`select count(*) from dead_letter`, "0")
	log := one.stderr.String() + other.stderr.String()
	if !strings.Contains(log, "40P01") || !strings.Contains(log, "40001") {
		t.Errorf("neither instance met a deadlock and a serialization failure:\n%s", log)
	}
	t.Logf("%d deadlocks and %d serialization failures were tried again", strings.Count(log, "40P01"), strings.Count(log, "40001"))
}

// rival locks B, then A, and lets both go, a few times.
func (w *caseWorld) rival(rounds int) {
	for range rounds {
		ctx := w.tb.Context()
		_ = pgx.BeginFunc(ctx, w.db.Pool, func(tx pgx.Tx) error { // it may be the victim
			for _, k := range []string{"B", "A"} {
				if _, err := tx.Exec(ctx, "select from cnt where k = $1 for update", k); err != nil {
					return err
				}
			}
			return tx.Rollback(ctx)
		})
	}
}

// Proves that a change of the table which waits for somebody's transaction holds
// the intake back and does no more (case D13): lock_timeout ends each attempt,
// the log names the sink and its table, the claim is kept, and it goes on by
// itself.
func TestCaseWaitingAlterTable(t *testing.T) {
	w := newCaseWorld(t, "testdata/cases/D13")
	r := w.background()
	w.waitFor(`select count(*) from target`, "1")
	reader, err := w.db.Pool.Begin(t.Context())
	noErr(t, err)
	_, err = reader.Exec(t.Context(), "select count(*) from target")
	noErr(t, err)
	altered := make(chan error)
	go func() {
		_, err := w.db.Pool.Exec(context.WithoutCancel(t.Context()), "alter table target add column c int")
		altered <- err
	}()
	w.waitFor(`select count(*) from pg_locks where relation = 'target'::regclass and mode = 'AccessExclusiveLock' and not granted`, "1")
	w.send(readCaseRecords(t, w.file("later.ndjson")))
	r.says("insert target: ERROR: canceling statement due to lock timeout", 3)
	noErr(t, reader.Rollback(t.Context()))
	noErr(t, <-altered)
	w.waitFor(`select count(*) from target`, "3")
	r.finish()
	w.value(`select epoch || ' ' || next_offset || ' ' || dead_letters from consumer_offset`, "1 3 0")
}

// Proves that a table may change while the program runs (case C33): it goes on
// with a new column, which has its default until the next start; a dropped one
// that it writes holds the intake back with an error that names it, and it goes
// on by itself when the column is back. No message is blamed.
func TestCaseAlteredTable(t *testing.T) {
	w := newCaseWorld(t, "testdata/cases/C33")
	r := w.background()
	w.waitFor(`select count(*) from people`, "2")
	w.db.Exec(`alter table people add column flag boolean`)
	w.send(readCaseRecords(t, w.file("later.ndjson")))
	w.waitFor(`select count(*) from people`, "3")
	w.db.Exec(`alter table people drop column name`)
	w.send(readCaseRecords(t, w.file("last.ndjson")))
	r.says(`no column \"name\" in table people`, 12)
	w.db.Exec(`alter table people add column name text`)
	w.waitFor(`select count(*) from people`, "4")
	r.finish()
	w.value(`select string_agg(concat_ws(' ', id, name, flag), ', ' order by id) from people`, "1, 2, 3, 4 d")
	w.value(`select epoch || ' ' || next_offset || ' ' || dead_letters from consumer_offset`, "1 4 0")
}

// Proves that whatever keeps the program from its database makes no dead letter
// and stops nothing for good (case E07).
func TestCaseOutages(t *testing.T) {
	outages := map[string]struct {
		tries      int // that fail before it ends
		begin, end func(*caseWorld, *embedded.Server)
	}{
		"stopped": {
			12,
			func(w *caseWorld, s *embedded.Server) { noErr(w.tb, s.Stop(w.tb.Context(), embedded.StopImmediate)) },
			func(w *caseWorld, s *embedded.Server) { noErr(w.tb, s.Restart(w.tb.Context())) },
		},
		"too many connections": {
			12,
			func(w *caseWorld, _ *embedded.Server) { w.lockOut(`alter role app connection limit 0`) },
			func(w *caseWorld, _ *embedded.Server) { w.db.Exec(`alter role app connection limit -1`) },
		},
		"wrong password": {
			12,
			func(w *caseWorld, _ *embedded.Server) { w.lockOut(`alter role app password 'another'`) },
			func(w *caseWorld, _ *embedded.Server) { w.db.Exec(`alter role app password 'right'`) },
		},
	}
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			w, server := newServerWorld(t, "testdata/cases/E07")
			w.asApp()
			r := w.background()
			w.waitFor(`select count(*) from event`, "500")
			outage.begin(w, server)
			w.send(readCaseRecords(t, w.file("later.ndjson")))
			r.says("will try again", outage.tries)
			outage.end(w, server)
			w.waitFor(`select sum(next_offset) from consumer_offset`, "1000")
			r.finish()
			w.value(`select count(*) || ' of ' || count(distinct id) from event`, "1000 of 1000")
			w.value(`select count(*) from dead_letter`, "0")
		})
	}
}

// newServerWorld is a case on a database server of its own.
func newServerWorld(tb testing.TB, dir string) (*caseWorld, *embedded.Server) {
	tb.Helper()
	server := tablestest.Server(tb)
	return newCaseWorld(tb, dir, tablestest.OnServer(server.URL("postgres"))), server
}

// asApp lets the program sign in as the role app, with a password.
func (w *caseWorld) asApp() {
	w.tb.Helper()
	w.db.Exec(`create role app login password 'right';
grant all on schema ` + w.db.Schema + ` to app;
grant all on all tables in schema ` + w.db.Schema + ` to app;
grant all on all sequences in schema ` + w.db.Schema + ` to app`)
	rules := w.db.Value("show hba_file")
	noErr(w.tb, os.WriteFile(rules, []byte("host all app 127.0.0.1/32 scram-sha-256\n"+readFile(w.tb, rules)), 0o600))
	w.db.Exec("select pg_reload_conf()")
	u, err := url.Parse(w.db.URL)
	noErr(w.tb, err)
	u.User = url.UserPassword("app", "right")
	w.env["DATABASE_URL"] = u.String()
}

// lockOut changes the role app and ends its sessions.
func (w *caseWorld) lockOut(change string) {
	w.tb.Helper()
	w.db.Exec(change)
	w.db.Exec(`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'`)
}

// Proves that the program takes no lock that outlives its transaction (case
// D10), by all statements that the server has seen from a migration, a run, a second
// run, a replay and a status.
func TestCaseNoSessionLocks(t *testing.T) {
	w, server := newServerWorld(t, "testdata/cases/E07")
	w.db.Exec(`alter system set log_statement = 'all'`)
	w.db.Exec(`select pg_reload_conf()`)
	w.waitFor(`select current_setting('log_statement')`, "all")
	file := w.file("pipeline.yaml")
	for _, args := range [][]string{{"migrate", "up", file}, {"run", file, "--to-end"}, {"run", file, "--to-end"}, {"replay", file}, {"status", file}} {
		if got := w.run(args...); got.code != exitOK {
			t.Fatalf("%v exits with %d: %s", args, got.code, got.stderr)
		}
	}
	log := strings.ToLower(server.LogTail(1 << 20))
	if !strings.Contains(log, "consumer_offset") {
		t.Fatal("the server has logged no statement of the ledger")
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, "advisory_lock") || strings.Contains(line, "listen ") || strings.Contains(line, "create temp") {
			t.Errorf("a session keeps something beyond its transaction: %s", line)
		}
	}
}

// Proves that somebody's old transaction, which keeps all dead rows, changes
// nothing but time (case D17): a thousand batches under it are exact; and says
// what it costs and how the offset's table has grown.
func TestCaseLongTransaction(t *testing.T) {
	took := map[bool]time.Duration{}
	for _, held := range []bool{false, true} {
		w := newCaseWorld(t, "testdata/cases/D17")
		old, err := w.db.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		noErr(t, err)
		if held {
			_, err = old.Exec(t.Context(), "select count(*) from consumer_offset")
			noErr(t, err)
		}
		began := time.Now()
		if got := w.run("run", w.file("pipeline.yaml"), "--to-end"); got.code != exitOK {
			t.Fatalf("the run exits with %d: %s", got.code, got.stderr)
		}
		took[held] = time.Since(began)
		w.value(`select count(*) || ' of ' || count(distinct id) from event`, "10000 of 10000")
		w.account()
		t.Logf("old transaction %v: %v, consumer_offset has %s bytes", held, took[held], w.db.Value(`select pg_relation_size('consumer_offset')`))
		noErr(t, old.Rollback(t.Context()))
	}
	t.Logf("throughput under an old transaction: %.2f of without", float64(took[false])/float64(took[true]))
}
