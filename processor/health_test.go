package processor_test

import (
	"sync"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor"
)

// healthOf waits until the partition's health is as the test wants it.
func (w *world) healthOf(p *processor.Processor, partition int32, what string, is func(processor.PartitionHealth) bool) processor.PartitionHealth {
	w.tb.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var last processor.Health
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		last = p.Health()
		for _, h := range last.Partitions {
			if h.Partition == partition && is(h) {
				return h
			}
		}
	}
	w.tb.Fatalf("partition %d is not %s: %+v", partition, what, last)
	panic("unreachable")
}

// Proves case H05: a partition whose transaction waits for a row that somebody
// has locked is named as stuck, with since when and at which offset, while the
// others go on and an idle one is well; unlocked, all is well again.
func TestStuckBehindALock(t *testing.T) {
	w := newWorld(t, 3)
	w.db.Exec(`create table locked (id int primary key); insert into locked values (1);
create function touch() returns trigger language plpgsql as $$ begin perform 1 from locked for update; return new; end $$;
create trigger touch before insert on appended for each row when (new.id like 'held%') execute function touch()`)
	lock, err := w.db.Pool.Begin(t.Context())
	must(t, err)
	unlock := sync.OnceFunc(func() { _ = lock.Rollback(t.Context()) })
	t.Cleanup(unlock)
	_, err = lock.Exec(t.Context(), `select from locked for update`)
	must(t, err)
	w.produce(0, numbered("held", 10)...)
	began := time.Now()
	s := startHalting(w, appendSink{}, func(cfg *processor.Config) {
		cfg.StuckAfter = 300 * time.Millisecond
		cfg.Postgres.LockTimeout, cfg.Postgres.TransactionTimeout = patience, patience
	})
	stuck := w.healthOf(s.p, 0, "stuck", func(h processor.PartitionHealth) bool { return h.Stuck && h.State == processor.StateWorking })
	if !s.p.Health().Degraded || stuck.Next != 0 || stuck.Since.Before(began) || time.Since(stuck.Since) < 300*time.Millisecond {
		t.Errorf("stuck: %+v", stuck)
	}
	w.produce(1, numbered("free", 10)...)
	w.next(1, 10)
	for partition := range int32(2) {
		w.healthOf(s.p, partition+1, "well", func(h processor.PartitionHealth) bool { return h.State == processor.StateWaiting && !h.Stuck })
	}
	unlock()
	well := w.healthOf(s.p, 0, "well", func(h processor.PartitionHealth) bool { return h.State == processor.StateWaiting })
	if s.p.Health().Degraded || well.Next != 10 || well.Progress.IsZero() {
		t.Errorf("after the lock: %+v", well)
	}
	s.finish()
	if h := s.p.Health(); h.Degraded || len(h.Partitions) != 0 {
		t.Errorf("after the run: %+v", h)
	}
	w.effects(20)
}
