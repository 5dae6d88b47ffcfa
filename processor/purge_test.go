package processor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// forgetful purges keys as soon as they are there.
func (w *world) forgetful(owner string) (processor.Config, <-chan int64) {
	purged := make(chan int64, 10_000)
	cfg := w.config()
	cfg.Owner = owner
	cfg.Keys = processor.Keys{Retain: time.Microsecond, PurgeEvery: 10 * time.Millisecond}
	cfg.Hooks.Purged = func(keys int64) { purged <- keys }
	return cfg, purged
}

// Proves that a purger at work makes no stored offset unsafe: with Kafka's offset
// set back to the beginning, and members that join and leave while keys vanish
// behind them, each record has one effect (case A03).
func TestPurgeWhileMembersJoinAndLeave(t *testing.T) {
	w := newWorld(t, 2)
	produce := func(prefix string) {
		for p := range int32(2) {
			w.produce(p, numbered(fmt.Sprintf("%s%d-", prefix, p), 100)...)
		}
	}
	produce("a")
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	for p := range int32(2) {
		w.CommitGroupOffset(t, w.group, w.topic, p, 0)
	}
	cfg, purged := w.forgetful("first")
	first := start(t, newProcessor(t, cfg, texts(appendSink{})))
	var keys int64
	for keys < 200 {
		keys += await(t, purged, "the purge")
	}
	produce("b")
	cfg, _ = w.forgetful("second")
	second := start(t, newProcessor(t, cfg, texts(appendSink{})))
	w.waitFor(`select count(distinct owner) from consumer_offset`, "2")
	produce("c")
	first.finish()
	w.waitFor(`select string_agg(distinct owner, ' ') from consumer_offset`, "second")
	cfg, _ = w.forgetful("third")
	start(t, newProcessor(t, cfg, texts(appendSink{})))
	produce("d")
	w.waitFor(`select count(distinct owner) from consumer_offset`, "2")
	second.finish()
	produce("e")
	w.waitFor(`select sum(next_offset) from consumer_offset`, "1000")
	w.waitFor(`select count(*) from processed_message`, "0")
	w.effects(1000)
	if got := w.db.Value(`select string_agg(partition || '@' || record_offset, ' ' order by partition) from key_floor`); got != "0@499 1@499" {
		t.Errorf("the floors are %s", got)
	}
}

// Proves that without a time to keep them no key is purged, however old.
func TestKeysAreKeptForEver(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("a", 10)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.db.Exec(`update processed_message set processed_at = '2001-01-01'`)
	w.produce(0, numbered("b", 10)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	if got := w.db.Value(`select (select count(*) from processed_message) || ' ' || (select count(purged_at) from handler)`); got != "20 0" {
		t.Errorf("keys and purges: %s", got)
	}
}

// Proves that a purge that fails neither ends the run nor stops the intake, and
// is tried again.
func TestPurgeFails(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`alter table key_floor rename to key_floor_away`)
	cfg, purged := w.forgetful("first")
	failed := make(chan error, 10_000)
	cfg.Hooks.Retrying = func(what string, err error, _ time.Duration) {
		if what == "purge" {
			failed <- err
		}
	}
	start(t, newProcessor(t, cfg, texts(appendSink{})))
	w.produce(0, numbered("a", 10)...)
	if err := await(t, failed, "the purge to fail"); !strings.Contains(err.Error(), "key_floor") {
		t.Errorf("it fails by %v", err)
	}
	w.waitFor(`select count(*) from appended`, "10")
	w.db.Exec(`alter table key_floor_away rename to key_floor`)
	for keys := int64(0); keys < 10; {
		keys += await(t, purged, "the purge")
	}
	w.effects(10)
}

// Proves that a replay which begins where keys were purged is refused with the
// partition, its floor and the way out; that behind the floor, and where it is
// asked for, it is not.
func TestReplayBelowFloor(t *testing.T) {
	w := newWorld(t, 2)
	w.produce(0, numbered("a", 10)...)
	w.produce(1, numbered("b", 10)...)
	p := newProcessor(t, w.config(), texts(appendSink{}))
	toEnd(t, p)
	w.db.Exec(`update processed_message set processed_at = '2001-01-01' where partition = 1 and record_offset < 6`)
	cfg, purged := w.forgetful("first")
	cfg.Keys.Retain = 24 * time.Hour
	run := start(t, newProcessor(t, cfg, texts(appendSink{})))
	if keys := await(t, purged, "the purge"); keys != 6 {
		t.Errorf("%d keys were purged", keys)
	}
	run.finish()

	_, err := p.Replay(t.Context(), processor.Range{})
	want := "replay " + w.topic + "/1@0: keys up to offset 5 were purged"
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "begin at 6, or set Range.BeyondFloor") || strings.Contains(err.Error(), w.topic+"/0") {
		t.Errorf("below the floor: %v", err)
	}
	report, err := p.Replay(t.Context(), processor.Range{From: map[int32]int64{1: 6}})
	if err != nil || !report.Clean() || report.Records != 14 {
		t.Errorf("behind the floor: %v, %v", report, err)
	}
	report, err = p.Replay(t.Context(), processor.Range{To: map[int32]int64{1: 0}})
	if err != nil || !report.Clean() || report.Records != 10 {
		t.Errorf("another partition: %v, %v", report, err)
	}
	report, err = p.Replay(t.Context(), processor.Range{BeyondFloor: true})
	if err != nil || report.Fresh != 6 || report.Duplicates != 14 {
		t.Errorf("beyond the floor: %v, %v", report, err)
	}
	w.effects(20)
}

// Proves that a replay during which keys are purged says so, instead of calling
// their records new.
func TestPurgeDuringReplay(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 10)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	// The decoder runs after the look at the floors and before that at the keys.
	p := texts(appendSink{})
	decode := p.Decode
	p.Decode = func(ctx context.Context, r *schema.Record) (string, error) {
		if r.Offset == 0 {
			w.db.Exec(`delete from processed_message where record_offset < 4;
				insert into key_floor (handler, topic, partition, record_offset) select id, 'orders', 0, 3 from handler`)
		}
		return decode(ctx, r)
	}
	report, err := newProcessor(t, w.config(), p).Replay(t.Context(), processor.Range{})
	if err == nil || !strings.Contains(err.Error(), "keys up to offset 3 were purged") || report.Fresh != 4 {
		t.Errorf("%v, %v", report, err)
	}
}
