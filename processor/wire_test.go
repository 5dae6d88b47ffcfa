package processor_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// wire records what each session sends from its begin to its end, at the wire: a
// statement counts there whoever has written it, the driver included.
type wire struct {
	mu       sync.Mutex
	schema   string
	open     map[int][]string
	finished [][]string
}

func (w *wire) rule(m pgproxy.Message) pgproxy.Action {
	if !m.ToServer || m.Kind != 'Q' && m.Kind != 'E' {
		return pgproxy.Pass
	}
	text := strings.Join(strings.Fields(strings.ReplaceAll(m.SQL, `"`+w.schema+`"`, "ledger")), " ")
	w.mu.Lock()
	defer w.mu.Unlock()
	begun, inside := w.open[m.Session]
	switch {
	case strings.HasPrefix(text, "begin"):
		w.open[m.Session] = []string{text}
	case inside:
		w.open[m.Session] = append(begun, text)
		if text == "commit" || text == "rollback" {
			w.finished = append(w.finished, w.open[m.Session])
			delete(w.open, m.Session)
		}
	}
	return pgproxy.Pass
}

// advancing returns the transactions that advance a claim, each kind once, in the
// order in which they came first.
func (w *wire) advancing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var kinds []string
	for _, statements := range w.finished {
		text := strings.Join(statements, "\n")
		if strings.Contains(text, "set next_offset = $6") && !slices.Contains(kinds, text) {
			kinds = append(kinds, text)
		}
	}
	return kinds
}

// unportable is what distributed databases that speak PostgreSQL's protocol lack,
// or what does not hold there. A savepoint may stand where a batch is searched for
// a message at fault; in a clean one it would be two more round trips.
var unportable = map[string]*regexp.Regexp{
	"an advisory lock":      regexp.MustCompile(`(?i)\bpg_(try_)?advisory_`),
	"the order of sequence": regexp.MustCompile(`(?i)\b(nextval|currval|lastval|setval)\s*\(`),
	"a temporary table":     regexp.MustCompile(`(?i)\btemp(orary)?\b|\bpg_temp\b`),
	"a transaction id":      regexp.MustCompile(`(?i)\b(txid_\w+|pg_\w*xact\w*|pg_\w*snapshot\w*|xmin|xmax|xid8?)\b`),
	"listen and notify":     regexp.MustCompile(`(?i)\b(un)?listen\b|\b(pg_)?notify\b`),
	"a table lock":          regexp.MustCompile(`(?i)^lock\b`),
	"two phases":            regexp.MustCompile(`(?i)\bprepare transaction\b|\b(commit|rollback) prepared\b`),
	"a cursor":              regexp.MustCompile(`(?i)^(declare|fetch)\b`),
	"a savepoint":           regexp.MustCompile(`(?i)^(savepoint|release|rollback to)\b`),
}

// lacking names what the statements, one on each line, use of it.
func lacking(statements string) []string {
	var found []string
	for statement := range strings.SplitSeq(statements, "\n") {
		for name, pattern := range unportable {
			if pattern.MatchString(statement) {
				found = append(found, name+": "+statement)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// wireTables are those of the pipeline. The ledger's schema is that of the test.
const wireTables = `
create table payment (id uuid primary key, account text not null, amount numeric(12, 2) not null check (amount > 0));
create table total (account text primary key, amount numeric(20, 2) not null)`

// wireRecord is a payment as JSON; the number is its id.
func wireRecord(n int, amount string) string {
	return fmt.Sprintf(`{"id":"00000000-0000-4000-8000-%012d","account":"a%d","amount":%s}`, n, n%3, amount)
}

// wirePipeline inserts the payments and sums them up.
func wirePipeline(t *testing.T, db *tablestest.DB) processor.Pipeline[schema.Row] {
	t.Helper()
	fields := schema.NewFields("id", "account", "amount")
	sink := sinks.Tee[schema.Row](
		&sinks.Insert[schema.Row]{Table: "payment", Fields: fields, KeyFields: []string{"id"}},
		&sinks.Sum[schema.Row]{
			Table: "total", Key: []sinks.Column[schema.Row]{sinks.Field("account", "account")},
			Add: []sinks.Column[schema.Row]{sinks.Field("amount", "amount")},
		},
	)
	conn, err := pgx.Connect(t.Context(), db.URL)
	must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	must(t, sink.Prepare(t.Context(), conn))
	return processor.Pipeline[schema.Row]{Decode: schema.Rows(fields), Key: schema.AsUUID(schema.FieldPart("id")), Sink: sink}
}

// Proves which statements a batch transaction sends, and that a clean batch, with
// duplicates or without, sends nothing that PostgreSQL's distributed relatives lack
// or do otherwise. What a batch with a message at fault uses of it, which is off the
// hot path, is savepoints alone.
func TestWire(t *testing.T) {
	datadriven.RunTest(t, "testdata/wire", func(t *testing.T, d *datadriven.TestData) (answer string) {
		t.Run(d.Cmd, func(t *testing.T) { answer = wireAnswer(t, d) }) // for a topic of its own
		return answer
	})
}

// wireAnswer is what a scenario sends, or what of it is lacking elsewhere.
func wireAnswer(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	w := newWorld(t, 1)
	w.db.Exec(wireTables)
	w.produce(0, wireValues(t, d)...)
	proxy, err := pgproxy.Listen(w.db.URL)
	must(t, err)
	seen := &wire{schema: w.db.Schema, open: map[int][]string{}}
	proxy.SetRule(seen.rule)
	cfg := w.config()
	cfg.Postgres.URL = proxy.URL()
	toEnd(t, newProcessor(t, cfg, wirePipeline(t, w.db)))
	must(t, proxy.Close())
	kinds := seen.advancing()
	if len(kinds) == 0 {
		t.Fatal("no batch was seen")
	}
	found := lacking(strings.Join(kinds, "\n"))
	if d.Cmd == "uses" {
		return strings.Join(found, "\n")
	}
	for _, use := range found {
		t.Errorf("%s: a batch uses %s", d.Cmd, use)
	}
	return strings.Join(kinds, "\n---\n")
}

// wireValues reads the records of a scenario: one on each line, its number and its
// amount.
func wireValues(t *testing.T, d *datadriven.TestData) []schema.Record {
	t.Helper()
	var records []schema.Record
	for line := range strings.Lines(d.Input) {
		var n int
		var amount string
		if _, err := fmt.Sscan(line, &n, &amount); err != nil {
			t.Fatalf("%s: %q is no number and amount: %v", d.Pos, line, err)
		}
		records = append(records, schema.Record{Value: []byte(wireRecord(n, amount))})
	}
	return records
}

// The check finds each thing that it is there for, and leaves alone what only
// looks like one.
func TestWireFinds(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]int{
		"select pg_try_advisory_lock(1)":                   1,
		"insert into t values (nextval('s'))":              1,
		"create temp table x (n int)":                      1,
		"select txid_current()":                            1,
		"select xmin from t":                               1,
		"notify changes":                                   1,
		"select pg_notify('c', '')":                        1,
		"savepoint sp_1":                                   1,
		"release savepoint sp_1":                           1,
		"lock table t":                                     1,
		"prepare transaction 'x'":                          1,
		"declare c cursor for select 1":                    1,
		"insert into template (notified, released) values": 0,
		"copy t (locked) from stdin (format binary)":       0,
	} {
		if got := lacking("begin\n" + statement + "\ncommit"); len(got) != want {
			t.Errorf("%s: found %q, want %d", statement, got, want)
		}
	}
}
