package processor_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
)

// Proves that the commit marker at the end of a transactional topic is passed,
// so that the lag becomes 0 (case B04), and that aborted records have no effect
// (case B11).
func TestTransactionMarkers(t *testing.T) {
	w := newWorld(t, 1)
	aborted := w.Begin(t, w.topic+"-aborted")
	aborted.Produce(t, w.topic, 0, numbered("aborted", 10)...)
	aborted.Abort(t)
	committed := w.Begin(t, w.topic+"-committed")
	committed.Produce(t, w.topic, 0, numbered("committed", 10)...)
	committed.Commit(t)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(10)
	if n := w.db.Value(`select count(*) from appended where id like 'aborted%'`); n != "0" {
		t.Errorf("%s aborted records have an effect", n)
	}
	end := strconv.FormatInt(w.EndOffset(t, w.topic, 0), 10)
	if next := w.db.Value(`select next_offset from consumer_offset`); next != end || end != "22" {
		t.Errorf("the stored offset is %s, the log ends at %s (20 records and 2 markers)", next, end)
	}
}

// Proves that records of an open transaction are not applied, that the others
// of the topic are, and that they follow once it has ended.
func TestOpenTransaction(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("before", 5)...)
	open := w.Begin(t, w.topic+"-open")
	open.Produce(t, w.topic, 0, numbered("open", 5)...)
	w.produce(0, numbered("after", 5)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(5)
	open.Commit(t)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(15)
}

// Proves that gaps of the log are passed: the end is reached, the stored offset
// is the last one seen + 1, and the gaps are counted apart (case B08).
func TestGaps(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 100)...)
	w.DeleteRecords(t, w.topic, 0, 40)
	// A gap within the log: the records of an aborted transaction.
	gap := w.Begin(t, w.topic)
	gap.Produce(t, w.topic, 0, numbered("gone", 20)...)
	gap.Abort(t)
	w.produce(0, numbered("n", 10)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(70)
	if got := w.db.Value(`select first_offset || ' ' || next_offset || ' ' || records || ' ' || next_offset - first_offset - records from consumer_offset`); got != "40 131 70 21" {
		t.Errorf("first, next, records, gaps: %s", got)
	}
}

// Proves that the first batch ever, when it fails, is tried again from its own
// first offset while more records keep coming: no stored offset never means
// "take what comes" (case A19).
func TestFirstBatchFails(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`create sequence first_try;
create function fail_once() returns trigger language plpgsql as $$
begin if nextval('first_try') = 1 then raise exception 'first attempt' using errcode = '40001'; end if; return new; end $$;
create trigger fail_once before insert on appended for each row execute function fail_once()`)
	w.produce(0, numbered("m", 10)...)
	failed := make(chan error, 10)
	cfg := w.config()
	cfg.Hooks.RolledBack = func(_ processor.BatchInfo, err error) { failed <- err }
	start(t, newProcessor(t, cfg, texts(appendSink{})))
	t.Logf("the first attempt: %v", await(t, failed, "the first failure"))
	w.produce(0, numbered("n", 10)...)
	w.waitFor(`select next_offset from consumer_offset`, "20")
	w.effects(20)
}

// Proves that keys purged or expired make no stored offset unsafe: what was
// handled is not handled again, whatever Kafka's own offset says and whatever
// the key table has forgotten (case A03).
func TestStoredOffsetDecides(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 50)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.db.Exec(`delete from processed_message`)
	for _, forged := range []int64{0, 20, 50} {
		w.CommitGroupOffset(t, w.group, w.topic, 0, forged)
		toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
		w.effects(50)
	}
	w.produce(0, numbered("n", 50)...)
	w.CommitGroupOffset(t, w.group, w.topic, 0, 90) // ahead of the database: would skip 40
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(100)
}

// Proves that the position as key tells records of two partitions apart that
// have the same offset (case A16).
func TestPositionIsAKeyOfItsOwn(t *testing.T) {
	w := newWorld(t, 2)
	w.produce(0, processortest.Values("x")...)
	w.produce(1, processortest.Values("y")...)
	p := texts(appendSink{})
	p.Key = schema.ByPosition[string]()
	toEnd(t, newProcessor(t, w.config(), p))
	w.effects(2)
}

// Proves that each way to begin is resolved and stored before the first fetch,
// also for empty partitions, and that a partition which appears later is read
// from its beginning, even by a group that began at the end (case B06).
func TestStart(t *testing.T) {
	w := newWorld(t, 3)
	w.produce(0, numbered("old", 10)...)
	cfg := w.config()
	cfg.Kafka.Start = processor.Start{At: "latest"}
	toEnd(t, newProcessor(t, cfg, texts(appendSink{})))
	if got := w.db.Dump(`select partition, first_offset, next_offset from consumer_offset order by 1`); strings.Join(strings.Fields(got), " ") != "partition first_offset next_offset 0 10 10 1 0 0 2 0 0" {
		t.Errorf("the stored beginning:\n%s", got)
	}
	w.produce(0, numbered("new", 10)...)
	w.AddPartitions(t, w.topic, 2)
	w.produce(3, numbered("p3-", 10)...)
	w.produce(4, numbered("p4-", 10)...)
	toEnd(t, newProcessor(t, cfg, texts(appendSink{})))
	w.effects(30)
	if n := w.db.Value(`select count(*) from appended where id like 'old%'`); n != "0" {
		t.Errorf("%s records from before the start were applied", n)
	}
}

// Proves that a topic that was deleted and created again is not read on from
// the old position: the partition halts and names the reason.
func TestTopicRecreated(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 10)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.DeleteTopic(t, w.topic)
	w.CreateTopic(t, w.topic, 1)
	w.produce(0, numbered("n", 20)...)
	halt := runToHalt(t, w, texts(appendSink{}))
	if halt.Code != "topic_recreated" {
		t.Errorf("halted with %s: %v", halt.Code, halt.Err)
	}
	w.effects(10)
}

// Proves that records which retention has removed unread halt the partition
// with the range that is lost, while the others go on.
func TestRetentionPassedUs(t *testing.T) {
	w := newWorld(t, 2)
	for p := range int32(2) {
		w.produce(p, numbered(fmt.Sprint("m", p), 10)...)
	}
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	for p := range int32(2) {
		w.produce(p, numbered(fmt.Sprint("n", p), 30)...)
	}
	w.DeleteRecords(t, w.topic, 0, 25)
	halt := runToHalt(t, w, texts(appendSink{}))
	if halt.Code != processor.CodeRetentionPassed || !strings.Contains(halt.Err.Error(), "[10, 25)") || halt.Partition != 0 {
		t.Errorf("halted partition %d with %s: %v", halt.Partition, halt.Code, halt.Err)
	}
	w.effects(10 + 40)
	if got := w.db.Value(`select state || ' ' || reason from consumer_offset where partition = 0`); !strings.HasPrefix(got, "halted retention_passed") {
		t.Errorf("the ledger says %q", got)
	}
}

// runToHalt runs to the end, which must be prevented by one halted partition.
func runToHalt(t *testing.T, w *world, p processor.Pipeline[string]) processor.Halt {
	t.Helper()
	halts := make(chan processor.Halt, 10)
	cfg := w.config()
	cfg.Policy = processor.Policy{OnError: processor.HaltPartition, OnKeyReuse: processor.HaltPartition}
	cfg.Hooks.Halted = func(h processor.Halt) { halts <- h }
	err := tryToEnd(t, newProcessor(t, cfg, p))
	if err == nil {
		t.Fatal("the end was reached past a halt")
	}
	return await(t, halts, "the halt")
}
