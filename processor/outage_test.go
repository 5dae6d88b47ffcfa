package processor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema/tables/embedded"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// newWorldOnServer is a world on a database server that the test may stop.
func newWorldOnServer(tb testing.TB, partitions int32, change ...func(*embedded.Options)) (*world, *embedded.Server) {
	tb.Helper()
	server := tablestest.Server(tb, change...)
	db := tablestest.New(tb, tablestest.OnServer(server.URL("postgres")))
	w := &world{Client: newClient(tb), tb: tb, db: db, topic: topicName(tb), group: topicName(tb)}
	w.CreateTopic(tb, w.topic, partitions)
	w.db.Exec(appended)
	return w, server
}

// Proves that a database which stops at once and comes back, three times under
// load, costs nothing but time: nothing lost or doubled, nobody has to restart
// the processor (case D14, faults 7 and 8; the outage of A01).
func TestDatabaseRestarts(t *testing.T) {
	w, server := newWorldOnServer(t, 4)
	var retries atomic.Int64
	cfg := w.config()
	cfg.Batch.MaxRecords = 50
	committed := make(chan struct{}, 1)
	cfg.Hooks.Retrying = func(string, error, time.Duration) { retries.Add(1) }
	cfg.Hooks.Committed = func(processor.BatchInfo) {
		select {
		case committed <- struct{}{}:
		default:
		}
	}
	r := start(t, newProcessor(t, cfg, texts(appendSink{})))
	total := 0
	for round := range 3 {
		for p := range int32(4) {
			w.produce(p, numbered(fmt.Sprintf("r%dp%d-", round, p), 2000)...)
			total += 2000
		}
		await(t, committed, "a commit before the outage")
		must(t, server.Stop(t.Context(), embedded.StopImmediate))
		before := retries.Load()
		for retries.Load() == before { // the outage is felt before it ends
			await(t, time.After(10*time.Millisecond), "the next look")
		}
		must(t, server.Restart(t.Context()))
		w.db.Pool.Reset() // the test's own connections are gone, too
	}
	w.waitFor(`select sum(next_offset) from consumer_offset`, strconv.Itoa(total))
	r.finish()
	w.effects(total)
	replayed(t, newProcessor(t, w.config(), texts(appendSink{})))
}

// Proves that an outage of the database while the processor still starts, here
// while it waits for its topic, does not end the run.
func TestDatabaseDownDuringTheStart(t *testing.T) {
	w, server := newWorldOnServer(t, 1)
	warned := make(chan string, 100)
	cfg := w.config()
	cfg.Kafka.Topic += "-later"
	cfg.Logger = slog.New(slog.NewTextHandler(lines(warned), nil))
	start(t, newProcessor(t, cfg, texts(appendSink{})))
	awaitLine(t, warned, "the topic does not exist")
	must(t, server.Stop(t.Context(), embedded.StopImmediate))
	w.CreateTopic(t, cfg.Kafka.Topic, 1)
	w.Produce(t, cfg.Kafka.Topic, 0, numbered("m", 10)...)
	awaitLine(t, warned, "the database cannot be reached")
	must(t, server.Restart(t.Context()))
	w.db.Pool.Reset()
	w.waitFor(`select coalesce(sum(next_offset), 0) from consumer_offset`, "10")
	w.effects(10)
}

// Proves that Kafka's offset never runs ahead of the ledger, also through an
// outage and a kill in the middle of it, and that after both everything is
// there once (case A01).
func TestOutageThenKill(t *testing.T) {
	w, server := newWorldOnServer(t, 1)
	w.produce(0, numbered("m", 100)...)
	victim := w.process(t, "BATCH=20", "STEP=commit", "NTH=3")
	waitLine(t, victim, `^AT commit partition 0 offsets 40 to 60`)
	must(t, server.Stop(t.Context(), embedded.StopImmediate))
	victim.Kill()
	offset, ok := w.GroupOffset(t, w.group, w.topic, 0)
	if ok && offset > 40 {
		t.Errorf("Kafka was told offset %d, the database has 40", offset)
	}
	must(t, server.Restart(t.Context()))
	w.db.Pool.Reset()
	heir := w.process(t)
	w.waitFor(`select next_offset from consumer_offset`, "100")
	terminated(t, heir)
	w.effects(100)
	if offset, _ := w.GroupOffset(t, w.group, w.topic, 0); offset != 100 {
		t.Errorf("after a graceful stop Kafka knows offset %d, want 100", offset)
	}
}

// Proves that a name of the database which does not resolve for a while makes no
// dead letter and halts nothing (case E07).
func TestDatabaseNameUnknown(t *testing.T) {
	w := newWorld(t, 1)
	u, err := url.Parse(w.db.URL)
	must(t, err)
	address := u.Hostname()
	u.Host = net.JoinHostPort("database.test", u.Port())
	var unknown atomic.Bool
	retries := make(chan error, 100)
	cfg := w.config()
	cfg.Postgres.URL = u.String()
	cfg.Postgres.Configure = func(c *pgxpool.Config) error {
		c.ConnConfig.LookupFunc = func(_ context.Context, host string) ([]string, error) {
			if unknown.Load() {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			return []string{address}, nil
		}
		return nil
	}
	cfg.Hooks.Retrying = func(_ string, err error, _ time.Duration) {
		select {
		case retries <- err:
		default:
		}
	}
	r := start(t, newProcessor(t, cfg, texts(appendSink{})))
	w.produce(0, numbered("before", 100)...)
	w.waitFor(`select count(*) from appended`, "100")
	unknown.Store(true)
	w.db.Exec(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1`, "oncestream "+w.group)
	w.produce(0, numbered("after", 100)...)
	for failed := 0; failed < 12; { // more than Retry.Attempts
		if dns := new(net.DNSError); errors.As(await(t, retries, "another attempt"), &dns) {
			failed++
		}
	}
	unknown.Store(false)
	w.waitFor(`select sum(next_offset) from consumer_offset`, "200")
	r.finish()
	w.effects(200)
	if n := w.db.Value(`select count(*) from dead_letter`); n != "0" {
		t.Errorf("%s dead letters were made of the outage", n)
	}
}
