package processor_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
)

// Proves that a partition which stands at one record, with a queue that is full
// behind it, does not hold the others: they go on to their ends meanwhile.
func TestSlowPartitionHoldsNoOther(t *testing.T) {
	w := newWorld(t, 4)
	w.produce(0, numbered("slow", 1)...)
	for p := range int32(4) {
		w.produce(p, numbered(fmt.Sprintf("p%d-", p), 5000)...)
	}
	sink := newSlow()
	cfg := w.config()
	cfg.Batch.MaxRecords, cfg.Postgres.Concurrency = 10, 2
	paused := make(chan int32, 100)
	cfg.Hooks.Paused = func(_ string, partition int32) { paused <- partition }
	start(t, newProcessor(t, cfg, texts(sink)))
	await(t, sink.reached, "the slow record")
	for await(t, paused, "the slow partition to be paused") != 0 {
	}
	w.waitFor(`select sum(next_offset) from consumer_offset where partition > 0`, "15000")
	if next := w.db.Value(`select next_offset from consumer_offset where partition = 0`); next != "0" {
		t.Errorf("the slow partition stands at %s", next)
	}
	close(sink.letGo)
	w.waitFor(`select sum(next_offset) from consumer_offset`, "20001")
	w.effects(20_001)
}

// Proves that what a process asks of the database does not grow with its
// partitions: the connections are bounded by the transactions that may run at
// once, and a partition without records costs no statement.
func TestManyPartitions(t *testing.T) {
	const partitions, concurrency = 64, 3
	w := newWorld(t, partitions)
	for p := range int32(partitions) {
		w.produce(p, numbered(fmt.Sprintf("p%d-", p), 20)...)
	}
	proxy, err := pgproxy.Listen(w.db.URL)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	seen := &frequencies{counts: map[string]int{}, often: make(chan struct{}, 1)}
	proxy.SetRule(seen.rule)
	cfg := w.config()
	cfg.Postgres.URL, cfg.Postgres.Concurrency, cfg.Batch.MaxRecords = proxy.URL(), concurrency, 5
	cfg.Hooks.Committed = func(processor.BatchInfo) {
		n, err := strconv.Atoi(w.db.Value(`select count(*) from pg_stat_activity where application_name = $1`, "oncestream "+w.group))
		if err != nil || n > concurrency+2 {
			t.Errorf("%d connections (%v)", n, err)
		}
	}
	run := start(t, newProcessor(t, cfg, texts(appendSink{})))
	w.waitFor(`select sum(next_offset) from consumer_offset`, strconv.Itoa(20*partitions))
	seen.clear()
	await(t, seen.often, "a statement that is sent from time to time")
	if all := seen.total(); all >= partitions {
		t.Errorf("%d statements while there was nothing to do: %v", all, seen.counts)
	}
	run.finish()
	w.effects(20 * partitions)
}

// frequencies counts statements by their text.
type frequencies struct {
	mu     sync.Mutex
	counts map[string]int
	often  chan struct{} // told when one was counted often
}

func (f *frequencies) rule(m pgproxy.Message) pgproxy.Action {
	if !m.ToServer || m.Kind != 'Q' && m.Kind != 'E' {
		return pgproxy.Pass
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	const often = 5
	if f.counts[m.SQL]++; f.counts[m.SQL] == often {
		select {
		case f.often <- struct{}{}:
		default:
		}
	}
	return pgproxy.Pass
}

func (f *frequencies) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.counts)
	select {
	case <-f.often:
	default:
	}
}

func (f *frequencies) total() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, count := range f.counts {
		n += count
	}
	return n
}
