//go:build broker

package processor_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
)

// Proves that the holes of a compacted topic are passed: the end is reached,
// the stored offset is that of the last record + 1, the last message of each
// record key is there, what is missing is accounted for as gaps, and no warning
// is spent on them (case B08).
func TestCompactedTopic(t *testing.T) {
	const records, keys = 10_000, 50
	broker := processortest.SharedBroker(t)
	// A segment holds a megabyte at least, and the last one is never compacted: it
	// takes many bytes to have several of them.
	w := newWorldOn(t, broker.Client, 1, "cleanup.policy", "compact", "segment.bytes", "1048576", "compression.type", "uncompressed",
		"min.cleanable.dirty.ratio", "0.01", "min.compaction.lag.ms", "0")
	all := numbered("m", records)
	for i := range all {
		all[i].Key = fmt.Append(nil, "k", i%keys)
		all[i].Value = fmt.Appendf(nil, "%s %s", all[i].Value, strings.Repeat("x", 800))
	}
	w.produce(0, all...)
	left := w.waitForHoles(records / 2)

	warnings := make(chan string, 10)
	cfg := w.config()
	cfg.Logger = slog.New(slog.NewTextHandler(lines(warnings), &slog.HandlerOptions{Level: slog.LevelWarn}))
	toEnd(t, newProcessor(t, cfg, texts(appendSink{})))

	if got, want := w.db.Value(`select first_offset || ' ' || next_offset from consumer_offset`), fmt.Sprint("0 ", records); got != want {
		t.Errorf("first and next offset: %s, want %s", got, want)
	}
	// Compaction may have gone on since the log was looked at.
	handled := w.db.Value(`select records from consumer_offset`)
	if gaps := w.db.Value(`select (next_offset - first_offset - records >= $1) from consumer_offset`, records-left); gaps != "t" {
		t.Errorf("%s of %d records were handled, although %d are left", handled, records, left)
	}
	if got, want := w.db.Value(`select count(*) || ' ' || count(distinct id) from appended`), handled+" "+handled; got != want {
		t.Errorf("effects, and distinct ones: %s, want %s", got, want)
	}
	if last := w.db.Value(`select count(*) from appended where o >= $1`, records-keys); last != fmt.Sprint(keys) {
		t.Errorf("the last message of %s of %d record keys is there", last, keys)
	}
	select {
	case line := <-warnings:
		t.Errorf("gaps are normal, but it warns: %s", line)
	default:
	}
	replayed(t, newProcessor(t, w.config(), texts(appendSink{})))
	t.Logf("%s records handled of %d offsets; %d were left when the reading began", handled, records, left)
}

// waitForHoles waits until compaction has left fewer than limit records, and
// returns how many.
func (w *world) waitForHoles(limit int) int {
	w.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		n := len(w.readLog(ctx))
		if n < limit {
			return n
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.tb.Fatalf("after %v, %d records are left of the compacted log, want fewer than %d", patience, n, limit)
		}
	}
}

// readLog reads partition 0 as it is now, with a client of its own.
func (w *world) readLog(ctx context.Context) []schema.Record {
	w.tb.Helper()
	k, err := kgo.NewClient(kgo.SeedBrokers(w.Addrs()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		w.topic: {0: kgo.NewOffset().AtStart()},
	}))
	must(w.tb, err)
	defer k.Close()
	var records []schema.Record
	for end := w.EndOffset(w.tb, w.topic, 0); ; {
		fetches := k.PollFetches(ctx)
		must(w.tb, fetches.Err0())
		for _, r := range fetches.Records() {
			records = append(records, schema.Record{Offset: r.Offset, Key: r.Key})
		}
		if n := len(records); n > 0 && records[n-1].Offset >= end-1 {
			return records
		}
	}
}
