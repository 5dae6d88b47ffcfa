package processor_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// Proves that a batch whose keys another partition writes at the same moment is
// done again at once by the way that waits, and that its messages are duplicates
// then. The first batch is held after its keys until the other one waits for it.
func TestContested(t *testing.T) {
	w := newWorld(t, 2)
	const records = 50
	for p := range int32(2) {
		w.produce(p, numbered("m", records)...)
	}
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	var committed, rolledBack []processor.BatchInfo
	var reasons []error
	cfg := w.config()
	cfg.Postgres.Concurrency = 2
	cfg.Hooks.Step = func(s processor.Step, _ processor.BatchInfo) {
		if s == processor.StepApply {
			once.Do(func() { close(held); <-release })
		}
	}
	cfg.Hooks.Committed = func(b processor.BatchInfo) {
		mu.Lock()
		defer mu.Unlock()
		committed = append(committed, b)
	}
	cfg.Hooks.RolledBack = func(b processor.BatchInfo, err error) {
		mu.Lock()
		defer mu.Unlock()
		rolledBack, reasons = append(rolledBack, b), append(reasons, err)
	}
	cfg.Hooks.Retrying = func(what string, err error, pause time.Duration) {
		t.Errorf("%s is tried again after %v because of %v", what, pause, err)
	}
	run := start(t, newProcessor(t, cfg, texts(appendSink{})))
	await(t, held, "a batch to write its keys")
	w.waitFor(fmt.Sprintf(`select count(*) from pg_stat_activity where application_name = 'oncestream %s' and wait_event_type = 'Lock'`, w.group), "1")
	close(release)
	w.waitFor(`select sum(records) from consumer_offset`, fmt.Sprint(2*records))
	run.finish()

	w.effects(records)
	if got, want := w.account(), "records 100, producer duplicates 50, redelivered 0, offsets 100"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(rolledBack) != 1 || !errors.Is(reasons[0], offsets.ErrKeyContested) || rolledBack[0].Inserted || rolledBack[0].Contested {
		t.Fatalf("rolled back %+v because of %v, want one contested copy", rolledBack, reasons)
	}
	for _, b := range committed {
		if again := b.Partition == rolledBack[0].Partition && b.From == rolledBack[0].From; b.Contested != again || b.Inserted != again {
			t.Errorf("committed %+v; the second try is %t", b, again)
		}
	}
}
