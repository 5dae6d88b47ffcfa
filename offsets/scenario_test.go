package offsets_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// TestScenarios runs the scripts of testdata/scenarios, which show the protocol
// step by step: what each worker is told and what the tables hold. They are
// rewritten by -rewrite and reviewed as a diff.
//
// A command that must wait for another worker's transaction answers "waits for"
// and goes on in the background; "await" gives its result. Nothing sleeps:
// PostgreSQL is asked whether the session is blocked.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		db := tablestest.New(t, tablestest.Configure(func(c *pgxpool.Config) { c.MaxConns = 2 }))
		db.Exec(worldTables)
		s := &scenario{t: t, db: db, workers: make(map[string]*worker)}
		datadriven.RunTest(t, path, s.run)
		for name, w := range s.workers {
			for _, c := range []*session{w.batch, w.aside} {
				if c.result != nil {
					t.Errorf("%s is still waiting at the end: %s", name, s.waitFor(t, c))
				}
			}
		}
	})
}

// scenario is the state of one script.
type scenario struct {
	t       *testing.T // of the whole script; a command has its own
	db      *tablestest.DB
	workers map[string]*worker
}

// session is one connection. While a command runs in the background, result
// will deliver what it has to say; that runs on the script's own goroutine.
type session struct {
	name   string
	conn   *pgx.Conn
	result chan func() string
}

// patience ends a script that hangs.
const patience = 20 * time.Second

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "tables":
		return s.tables(t, d)
	case "progress":
		return s.progress(t)
	case "history":
		return s.history(t)
	case "snapshot":
		s.db.Exec(takeSnapshot)
		return "ok\n"
	case "restore":
		s.db.Exec(restoreSnapshot)
		return "ok\n"
	case "sql":
		s.db.Exec(d.Input)
		return "ok\n"
	}
	w := s.worker(t, d.Cmd)
	if len(d.CmdArgs) == 0 {
		d.Fatalf(t, "what does %s do?", d.Cmd)
	}
	command := *d // datadriven reuses its own, and the command may outlast it
	a := arguments{t: t, d: &command}
	if answer, ok := s.atOnce(t, w, a); ok {
		return answer
	}
	c, operation := w.operation(a)
	if operation == nil {
		d.Fatalf(t, "unknown command %s", a.verb())
	}
	if c.result != nil {
		d.Fatalf(t, "%s is still waiting", c.name)
	}
	s.launch(t, c, operation)
	if a.has("lock_timeout") { // it ends by itself
		return s.waitFor(t, c)
	}
	return s.settle(t, c)
}

// launch lets the operation run. Its goroutine ends with it; settle and waitFor
// take the result.
func (s *scenario) launch(t *testing.T, c *session, operation func(context.Context) func() string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	result := make(chan func() string, 1) // one result, which may come before it is asked for
	c.result = result
	go func() {
		defer cancel()
		result <- operation(ctx)
	}()
}

// atOnce does what needs no statement of the ledger.
func (s *scenario) atOnce(t *testing.T, w *worker, a arguments) (string, bool) {
	switch a.verb() {
	case "await":
		for _, c := range []*session{w.batch, w.aside} {
			if c.result != nil {
				return s.settle(t, c), true
			}
		}
		return "nothing to await\n", true
	case "uses":
		w.ledger = s.ledger(t, a.text("topic", "orders"), a.text("handler", "shop"))
		return "ok\n", true
	case "forgets":
		clear(w.held)
		return "ok\n", true
	case "believes":
		c := offsets.Claim{Partition: a.partition(), Epoch: a.number("epoch", 0), Next: a.number("next", 0)}
		w.held[c.Partition] = c
		return "ok\n", true
	}
	return "", false
}

// settle returns the command's result, or whom it waits for.
func (s *scenario) settle(t *testing.T, c *session) string {
	t.Helper()
	for {
		select {
		case result := <-c.result:
			c.result = nil
			return result()
		default:
		}
		if names := s.blockers(t, c); len(names) > 0 {
			return "waits for " + strings.Join(names, ", ") + "\n"
		}
	}
}

func (s *scenario) waitFor(t *testing.T, c *session) string {
	t.Helper()
	select {
	case result := <-c.result:
		c.result = nil
		return result()
	case <-time.After(patience):
		t.Fatalf("%s does not end", c.name)
		return ""
	}
}

func (s *scenario) blockers(t *testing.T, c *session) []string {
	t.Helper()
	var names []string
	err := s.db.Pool.QueryRow(t.Context(), `
		select coalesce(array_agg(distinct a.application_name order by a.application_name), '{}')
		from unnest(pg_blocking_pids($1)) as b join pg_stat_activity as a on a.pid = b`, int32(c.conn.PgConn().PID())).Scan(&names)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// worker returns the worker of that name, who connects at the first mention.
func (s *scenario) worker(t *testing.T, name string) *worker {
	t.Helper()
	if w, ok := s.workers[name]; ok {
		return w
	}
	if len(name) != 1 || name < "A" || name > "Z" {
		t.Fatalf("unknown command %s", name)
	}
	w := &worker{
		name: name, ledger: s.ledger(t, "orders", "shop"),
		batch: s.connect(t, name), aside: s.connect(t, name+" aside"),
		held: make(map[int32]offsets.Claim), moved: make(map[int32]offsets.Claim),
	}
	s.workers[name] = w
	return w
}

func (s *scenario) connect(t *testing.T, name string) *session {
	t.Helper()
	config := s.db.Pool.Config().ConnConfig
	config.RuntimeParams["application_name"] = name
	ctx := context.WithoutCancel(t.Context()) // the test of a command ends before the script
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close(ctx) })
	return &session{name: name, conn: conn}
}

func (s *scenario) ledger(t *testing.T, topic, handler string) *offsets.Ledger {
	t.Helper()
	l := offsets.New(offsets.Options{Schema: s.db.Schema, Group: "shop", Topic: topic, Handler: handler})
	if err := l.Register(t.Context(), s.db.Pool); err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *scenario) progress(t *testing.T) string {
	t.Helper()
	all, err := s.ledger(t, "orders", "shop").Progress(t.Context(), s.db.Pool)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "%d: %s %q owner %q epoch %d, %d to %d: records %d, applied %d, duplicates %d producer %d redelivery, gaps %d, rewound %d, skipped %d, open dead letters %d, until %s\n",
			p.Partition, p.State, p.Reason, p.Owner, p.Epoch, p.First, p.Next, p.Records, p.Applied(),
			p.DuplicatesProducer, p.DuplicatesRedelivery, p.Gaps(), p.Rewound, p.Skipped, p.OpenDeadLetters, p.RecordTime.UTC().Format(time.DateTime))
	}
	return b.String()
}

// tables shows the tables that are named, without the columns that tell a time.
func (s *scenario) tables(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var b strings.Builder
	for _, arg := range d.CmdArgs {
		query, ok := shown[arg.Key]
		if !ok {
			d.Fatalf(t, "tables shows %s", slices.Sorted(maps.Keys(shown)))
		}
		b.WriteString(s.db.Dump(query))
	}
	return b.String()
}
