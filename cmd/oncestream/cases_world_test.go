package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// casePatience is how long a case waits for something that must happen.
const casePatience = time.Minute

// caseWorld is what a case stands on: the topic "t" in a cluster of its own, a
// schema of its own, and the program.
type caseWorld struct {
	tb    testing.TB
	kafka *processortest.Cluster
	db    *tablestest.DB
	// registry has the schemas of the folder.
	registry *caseRegistry
	dir      string
	env      map[string]string
}

// newCaseWorld makes the tables and the topic of a case's folder and sends its
// records.
func newCaseWorld(tb testing.TB, dir string, opts ...tablestest.Option) *caseWorld {
	tb.Helper()
	w := &caseWorld{tb: tb, dir: dir, kafka: processortest.Kafka(tb), db: tablestest.New(tb, opts...)}
	w.registry = newCaseRegistry(tb, dir)
	w.env = map[string]string{
		"REGISTRY":     w.registry.server.URL,
		"DATABASE_URL": w.db.URL, "ONCESTREAM_SCHEMA": w.db.Schema, "KAFKA_BROKERS": strings.Join(w.kafka.Addrs(), ","),
	}
	w.db.Exec(readFile(tb, w.file("table.sql")))
	records := map[int32][]schema.Record{0: nil}
	if path := w.file("records.ndjson"); !missing(path) {
		records = readCaseRecords(tb, path)
	}
	partitions := int32(1)
	for p := range records {
		partitions = max(partitions, p+1)
	}
	w.kafka.CreateTopic(tb, "t", partitions)
	w.send(records)
	return w
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (w *caseWorld) send(records map[int32][]schema.Record) {
	w.tb.Helper()
	for p, list := range records {
		if len(list) > 0 {
			w.kafka.Produce(w.tb, "t", p, list...)
		}
	}
}

// outcome is what came of a run of the program.
type outcome struct {
	code           int
	stdout, stderr string
}

// complaints are the lines with which the program ends where something is
// wrong, without its log.
func (o outcome) complaints() string {
	var b strings.Builder
	for line := range strings.Lines(o.stderr) {
		if strings.HasPrefix(line, "oncestream: ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// run runs the program to its end.
func (w *caseWorld) run(args ...string) outcome {
	w.tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.tb.Context()), casePatience)
	defer cancel()
	got := w.runWithin(ctx, args...)
	if ctx.Err() != nil {
		w.tb.Fatalf("oncestream %s has not ended within %v:\n%s", strings.Join(args, " "), casePatience, got.stderr)
	}
	return got
}

func (w *caseWorld) runWithin(ctx context.Context, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, w.lookup, strings.NewReader(""), &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

func (w *caseWorld) lookup(name string) (string, bool) {
	value, ok := w.env[name]
	return value, ok
}

// caseRun is a run of the pipeline in the background.
type caseRun struct {
	tb     testing.TB
	stderr *lockedBuffer
	cancel context.CancelFunc
	code   chan int
}

// background runs the pipeline until it is finished or the test ends.
func (w *caseWorld) background() *caseRun {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.tb.Context()))
	r := &caseRun{tb: w.tb, stderr: &lockedBuffer{}, cancel: cancel, code: make(chan int, 1)}
	go func() {
		r.code <- run(ctx, []string{"run", w.file("pipeline.yaml")}, w.lookup, strings.NewReader(""), io.Discard, r.stderr)
	}()
	w.tb.Cleanup(func() { r.finish() })
	return r
}

// finish stops the run as a signal would, and waits for it: it must exit with 0.
// It may be called again.
func (r *caseRun) finish() {
	r.tb.Helper()
	if r.cancel == nil {
		return
	}
	r.cancel()
	r.cancel = nil
	select {
	case code := <-r.code:
		if code != exitOK {
			r.tb.Errorf("the run exits with %d:\n%s", code, r.stderr)
		}
	case <-time.After(casePatience):
		r.tb.Errorf("the run did not stop within %v:\n%s", casePatience, r.stderr)
	}
}

// says waits until the run has logged the text n times.
func (r *caseRun) says(text string, n int) {
	r.tb.Helper()
	eventually(r.tb, func() (bool, string) {
		log := r.stderr.String()
		return strings.Count(log, text) >= n, "the log does not say " + text + " often enough:\n" + log
	})
}

// lockedBuffer is a buffer that is read while it is written to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// waitFor waits until the query answers want. Meanwhile the database may be
// away.
func (w *caseWorld) waitFor(query, want string) {
	w.tb.Helper()
	eventually(w.tb, func() (bool, string) {
		got := "nothing"
		err := w.db.Pool.QueryRow(context.WithoutCancel(w.tb.Context()), "select coalesce(("+query+")::text, 'null')").Scan(&got)
		return got == want, fmt.Sprintf("%s\nstill answers %s (%v), want %s", query, got, err, want)
	})
}

// eventually waits until done says so, else it fails with what that has to say.
func eventually(tb testing.TB, done func() (ok bool, state string)) {
	tb.Helper()
	deadline := time.Now().Add(casePatience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ok, state := done(); !ok; ok, state = done() {
		if time.Now().After(deadline) {
			tb.Fatal(state)
		}
		<-tick.C
	}
}

// value checks what a query answers.
func (w *caseWorld) value(query, want string) {
	w.tb.Helper()
	if got := w.db.Value(query); got != want {
		w.tb.Errorf("%s\nanswers %s, want %s", query, got, want)
	}
}

func noErr(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
