package processor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// patience is how long a test waits for something that must happen.
const patience = 60 * time.Second

// appended is the table of the append sink: id is the message, p and o its
// position, seq the order of insertion.
const appended = `create table appended (id text not null, p int not null, o bigint not null, seq bigint generated always as identity)`

// appendSink appends each message's text. It has no idempotency of its own: an
// effect that is doubled or lost shows as a row too many or too few.
type appendSink struct{}

func (appendSink) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
	ids, ps, os := make([]string, len(batch)), make([]int32, len(batch)), make([]int64, len(batch))
	for i, m := range batch {
		ids[i], ps[i], os[i] = m.Body, m.Partition, m.Offset
	}
	_, err := tx.Exec(ctx, `insert into appended (id, p, o) select u.id, u.p, u.o from unnest($1::text[], $2::int[], $3::bigint[]) with ordinality as u (id, p, o, n) order by u.n`, ids, ps, os)
	return err
}

// sinkFunc is a sink of a function.
type sinkFunc func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error

func (f sinkFunc) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
	return f(ctx, tx, batch)
}

// texts is a pipeline of plain text whose key is the text itself.
func texts(sink processor.Sink[string]) processor.Pipeline[string] {
	return processor.Pipeline[string]{
		Decode: schema.Text(),
		Key:    schema.ByValue(func(m schema.Message[string]) string { return m.Body }),
		Sink:   sink,
	}
}

// world is what a test stands on: a topic and a group of its own on a broker,
// and a schema of its own in a database.
type world struct {
	*processortest.Client
	tb           testing.TB
	db           *tablestest.DB
	topic, group string
}

// newWorld creates a topic with the partitions; see newClient for the broker.
func newWorld(tb testing.TB, partitions int32, topicConfigs ...string) *world {
	tb.Helper()
	return newWorldOn(tb, newClient(tb), partitions, topicConfigs...)
}

func newWorldOn(tb testing.TB, client *processortest.Client, partitions int32, topicConfigs ...string) *world {
	tb.Helper()
	w := &world{Client: client, tb: tb, db: tablestest.New(tb), topic: topicName(tb), group: topicName(tb)}
	w.CreateTopic(tb, w.topic, partitions, topicConfigs...)
	w.db.Exec(appended)
	return w
}

// topicName is the test's name as a broker takes it.
func topicName(tb testing.TB) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '_') {
			return r
		}
		return '-'
	}, tb.Name())
}

// config reads the world's topic as its group, with quick timeouts.
func (w *world) config() processor.Config {
	return processor.Config{
		Group: w.group,
		Kafka: processor.Kafka{Brokers: w.Addrs(), Topic: w.topic, Start: processor.Start{At: "earliest"}, SessionTimeout: 3 * time.Second},
		Postgres: processor.Postgres{
			URL: w.db.URL, Schema: w.db.Schema, LockTimeout: time.Second, IdleTimeout: 2 * time.Second, TransactionTimeout: 20 * time.Second,
		},
		DrainTimeout: 3 * time.Second,
		Retry:        processor.Retry{Initial: 10 * time.Millisecond, Max: 500 * time.Millisecond},
		Logger:       slog.New(slog.NewTextHandler(&testWriter{tb: w.tb}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

func (w *world) produce(partition int32, records ...schema.Record) {
	w.tb.Helper()
	w.Produce(w.tb, w.topic, partition, records...)
}

// testWriter writes to the test's log, until the test has ended.
type testWriter struct{ tb testing.TB }

func (w *testWriter) Write(p []byte) (int, error) {
	defer func() { _ = recover() }() // a connection may end, and say so, after the test
	w.tb.Logf("%s", bytes.TrimSpace(p))
	return len(p), nil
}

func newProcessor[T any](tb testing.TB, cfg processor.Config, p processor.Pipeline[T]) *processor.Processor {
	tb.Helper()
	proc, err := processor.New(cfg, p)
	must(tb, err)
	return proc
}

// running is a run in the background.
type running struct {
	tb   testing.TB
	stop context.CancelFunc
	done chan struct{}
	err  error
	once sync.Once
}

// start runs a processor until it is stopped or the test ends.
func start(tb testing.TB, p *processor.Processor) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{tb: tb, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = p.Run(ctx)
	}()
	tb.Cleanup(r.finish)
	return r
}

// finish stops the run gracefully and waits for it.
func (r *running) finish() {
	r.once.Do(func() {
		r.stop()
		select {
		case <-r.done:
			if r.err != nil {
				r.tb.Errorf("run: %v", r.err)
			}
		case <-time.After(patience):
			r.tb.Errorf("the run did not stop within %v", patience)
		}
	})
}

// toEnd runs a processor until it has read what is there.
func toEnd(tb testing.TB, p *processor.Processor) {
	tb.Helper()
	must(tb, tryToEnd(tb, p))
}

func tryToEnd(tb testing.TB, p *processor.Processor) error {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := p.RunToEnd(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		tb.Fatalf("the end was not reached within %v (%v)", patience, err)
	}
	return err
}

// replayed replays everything and fails unless nothing is new.
func replayed(tb testing.TB, p *processor.Processor) processor.Report {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	report, err := p.Replay(ctx, processor.Range{})
	must(tb, err)
	if !report.Clean() {
		tb.Errorf("replay: %v, %+v", report, report.Examples)
	}
	return report
}

// waitFor polls the database until the query answers want.
func (w *world) waitFor(query, want string) {
	tb, db := w.tb, w.db
	tb.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		got := "nothing"
		if rows := db.Rows(query); len(rows) == 1 {
			got = rows[0][0]
		}
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%s\nstill answers %s, want %s", query, got, want)
		}
		<-tick.C
	}
}

// await waits for a signal of a hook.
func await[T any](tb testing.TB, signals <-chan T, what string) T {
	tb.Helper()
	select {
	case s := <-signals:
		return s
	case <-time.After(patience):
		tb.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}

// numbered returns n records with the values prefix0, prefix1 and so on.
func numbered(prefix string, n int) []schema.Record {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return processortest.Values(values...)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// effects checks that the append sink has seen want messages, each once, and
// in the order of their offsets within each partition.
func (w *world) effects(want int) {
	w.tb.Helper()
	if got := w.db.Value(`select count(*) || ' effects of ' || count(distinct id) || ' messages' from appended`); got != fmt.Sprintf("%d effects of %d messages", want, want) {
		w.tb.Errorf("%s, want %d", got, want)
	}
	disorder := w.db.Value(`select count(*) from (select o, lag(o) over (partition by p order by seq) as before from appended) x where o <= before`)
	if disorder != "0" {
		w.tb.Errorf("%s effects are out of order within their partition", disorder)
	}
}

// account checks that what has passed adds up, and returns how many records
// that were.
func (w *world) account() string {
	w.tb.Helper()
	row := w.db.Rows(`select sum(records), sum(duplicates_producer), sum(duplicates_redelivery), sum(next_offset - first_offset) from consumer_offset`)[0]
	if row[0] == tablestest.Null {
		w.tb.Fatal("the ledger is empty")
	}
	return fmt.Sprintf("records %s, producer duplicates %s, redelivered %s, offsets %s", row[0], row[1], row[2], row[3])
}
