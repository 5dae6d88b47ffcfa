package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// seenWorld is a topic, a database and a pipeline that is run with an HTTP
// address.
type seenWorld struct{ *caseWorld }

func newSeenWorld(tb testing.TB, partitions int32, more string, topicConfigs ...string) seenWorld {
	tb.Helper()
	w := seenWorld{&caseWorld{tb: tb, kafka: processortest.Kafka(tb), db: tablestest.New(tb), dir: tb.TempDir()}}
	w.kafka.CreateTopic(tb, "t", partitions, topicConfigs...)
	w.db.Exec("create table effect (id text primary key)")
	w.env = map[string]string{"KAFKA_BROKERS": strings.Join(w.kafka.Addrs(), ","), "DATABASE_URL": w.db.URL, "ONCESTREAM_SCHEMA": w.db.Schema}
	w.write("pipeline.yaml", `name: g
kafka: {brokers: [k], topic: t, start: earliest, session_timeout: 6s}
postgres: {url: "${DATABASE_URL}"}
http: {listen: "127.0.0.1:0"}
watch: {every: 100ms}
key: {field: id}
sinks: [{insert: {table: effect}}]
`+more)
	return w
}

// write writes a file beside the pipeline's.
func (w seenWorld) write(name, text string) {
	noErr(w.tb, os.WriteFile(w.file(name), []byte(text), 0o600))
}

// sendIDs sends messages with these ids, which are JSON.
func (w seenWorld) sendIDs(partition int32, ids ...string) {
	values := make([]string, len(ids))
	for i, id := range ids {
		values[i] = fmt.Sprintf(`{"id": %s}`, id)
	}
	w.kafka.Produce(w.tb, "t", partition, processortest.Values(values...)...)
}

// seenRun is a run in the background, and where it answers.
type seenRun struct {
	*caseRun
	address string
}

func (w seenWorld) start() seenRun {
	w.tb.Helper()
	r := seenRun{caseRun: w.background()}
	listening := regexp.MustCompile(`answering over HTTP.*address=(\S+)`)
	eventually(w.tb, func() (bool, string) {
		text := r.stderr.String()
		found := listening.FindStringSubmatch(text)
		if found != nil {
			r.address = found[1]
		}
		return found != nil, "there is no address in:\n" + text
	})
	return r
}

// get returns the status and the body of an answer; 0 where there is none.
func (r seenRun) get(path string) (int, string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.tb.Context()), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+path, http.NoBody)
	if err != nil {
		r.tb.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

// series returns the series of a metric, "partition=0 3" and so on, sorted.
func (r seenRun) series(name string) []string {
	_, body := r.get("/metrics")
	var found []string
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, metricPrefix+name+"{"); ok {
			rest = strings.NewReplacer(`group="g",`, "", `,topic="t"`, "", `topic="t"`, "", `"`, "", "}", "").Replace(strings.TrimSpace(rest))
			found = append(found, strings.TrimPrefix(rest, "group=g"))
		}
	}
	slices.Sort(found)
	return found
}

// shows waits until the metric has these series.
func (r seenRun) shows(name string, want ...string) {
	r.tb.Helper()
	eventually(r.tb, func() (bool, string) {
		got := r.series(name)
		return slices.Equal(got, want), fmt.Sprintf("%s is %q, want %q", name, got, want)
	})
}

// answers waits until a path is answered like this.
func (r seenRun) answers(path string, code int, text string) {
	r.tb.Helper()
	eventually(r.tb, func() (bool, string) {
		got, body := r.get(path)
		return got == code && strings.Contains(body, text), fmt.Sprintf("%s answers %d %q, want %d %q", path, got, body, code, text)
	})
}

// A run answers over HTTP from its start to its end: alive at once, ready when it
// reads; a halted partition degrades it without taking it out of service, and the
// metrics show which one, why, and what waits behind it, while the other goes on.
func TestHTTP(t *testing.T) {
	w := newSeenWorld(t, 2, "on_error: halt\n")
	w.sendIDs(0, `"a"`, `"b"`)
	w.sendIDs(1, `"c"`, `{}`, `"d"`)
	r := w.start()
	r.answers("/livez", 200, "ok")
	r.answers("/readyz", 200, "degraded: t/1 halted at offset 1 since ")
	r.shows("partition_claimed", "partition=0 1", "partition=1 1")
	r.shows("records_total", " 3")
	r.shows("next_offset", "partition=0 2", "partition=1 1")
	r.shows("lag_offsets", "partition=0 0", "partition=1 2")
	if halted := r.series("partition_halted"); len(halted) != 1 || !strings.HasPrefix(halted[0], "code=") || !strings.HasSuffix(halted[0], "partition=1 1") {
		t.Errorf("halted are %q", halted)
	}
	w.sendIDs(0, `"e"`)
	r.shows("next_offset", "partition=0 3", "partition=1 1")
	var s status
	eventually(t, func() (bool, string) {
		code, body := r.get("/status")
		return code == 200 && json.Unmarshal([]byte(body), &s) == nil &&
			s.Total.Processed == 4 && s.Total.Lag == 2 && s.Partitions[1].State == "halted", "the status is " + body
	})
	if code, _ := r.get("/nothing"); code != 404 {
		t.Errorf("an unknown path is answered with %d", code)
	}
	r.finish()
	if code, _ := r.get("/livez"); code != 0 {
		t.Errorf("after the end it answers with %d", code)
	}
}

// An address that is taken ends the start, before anything is read.
func TestHTTPAddressTaken(t *testing.T) {
	w := newSeenWorld(t, 1, "")
	first := w.start()
	if got := w.run("run", w.file("pipeline.yaml"), "--http", first.address); got.code != exitFault || !strings.Contains(got.complaints(), "http.listen (ONCESTREAM_HTTP, --http): ") {
		t.Errorf("it exits with %d: %s", got.code, got.complaints())
	}
	first.finish()
}

// A stop that comes while the start is not done yet is graceful, too.
func TestStopDuringTheStart(t *testing.T) {
	w := newSeenWorld(t, 1, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := w.runWithin(ctx, "run", w.file("pipeline.yaml")); got.code != exitOK {
		t.Errorf("it exits with %d: %s", got.code, got.stderr)
	}
}

// Over the fleet there is one series of each partition, whoever holds it: what
// moves away leaves nothing behind, which would show a lag that only grows (case
// H11).
func TestOneSeriesPerPartition(t *testing.T) {
	w := newSeenWorld(t, 4, "")
	for p := range int32(4) {
		w.sendIDs(p, fmt.Sprintf(`"%d"`, p))
	}
	first := w.start()
	all := []string{"partition=0 0", "partition=1 0", "partition=2 0", "partition=3 0"}
	first.shows("lag_offsets", all...)
	second := w.start()
	eventually(t, func() (bool, string) {
		a, b := first.series("lag_offsets"), second.series("lag_offsets")
		union := slices.Sorted(slices.Values(slices.Concat(a, b)))
		return len(a) == 2 && len(b) == 2 && slices.Equal(union, all), fmt.Sprint("they show ", a, b)
	})
	first.finish()
	second.shows("lag_offsets", all...)
	second.shows("partition_claimed", "partition=0 1", "partition=1 1", "partition=2 1", "partition=3 1")
	second.finish()
}
