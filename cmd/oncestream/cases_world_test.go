package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
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
	dir   string
	env   map[string]string
}

// newCaseWorld makes the tables and the topic of a case's folder and sends its
// records.
func newCaseWorld(tb testing.TB, dir string, opts ...tablestest.Option) *caseWorld {
	tb.Helper()
	w := &caseWorld{tb: tb, dir: dir, kafka: processortest.Kafka(tb), db: tablestest.New(tb, opts...)}
	w.env = map[string]string{
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
	got := w.runUntil(ctx, args...)
	if ctx.Err() != nil {
		w.tb.Fatalf("oncestream %s has not ended within %v:\n%s", strings.Join(args, " "), casePatience, got.stderr)
	}
	return got
}

// runUntil runs the program until it ends by itself or ctx does, which stops it
// as a signal would.
func (w *caseWorld) runUntil(ctx context.Context, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	env := func(name string) (string, bool) {
		value, ok := w.env[name]
		return value, ok
	}
	code := run(ctx, args, env, strings.NewReader(""), &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// background runs the pipeline until stop is called, which answers with what
// came of it.
func (w *caseWorld) background(args ...string) (stop func() outcome) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.tb.Context()))
	done := make(chan outcome, 1)
	go func() { done <- w.runUntil(ctx, append([]string{"run", w.file("pipeline.yaml")}, args...)...) }()
	var result *outcome
	stop = func() outcome {
		cancel()
		if result == nil {
			select {
			case got := <-done:
				result = &got
			case <-time.After(casePatience):
				w.tb.Fatalf("the run did not stop within %v", casePatience)
			}
		}
		return *result
	}
	w.tb.Cleanup(func() { stop() })
	return stop
}

// waitFor waits until the query answers want. Meanwhile the database may be
// away.
func (w *caseWorld) waitFor(query, want string) {
	w.tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.tb.Context()), casePatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	got := "nothing"
	for got != want {
		var answer string
		if err := w.db.Pool.QueryRow(ctx, "select ("+query+")::text").Scan(&answer); err == nil {
			got = answer
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.tb.Fatalf("%s\nstill answers %s, want %s", query, got, want)
		}
	}
}

// value checks what a query answers.
func (w *caseWorld) value(query, want string) {
	w.tb.Helper()
	if got := w.db.Value(query); got != want {
		w.tb.Errorf("%s\nanswers %s, want %s", query, got, want)
	}
}
