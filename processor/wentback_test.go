package processor_test

import (
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// Proves that a database that went back under an idle processor is told with both
// positions, is no halt, and that what it has lost is redone once. The restore of a
// real backup is in restore_test.go.
func TestWentBackIsTold(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 50)...)
	type told struct{ before, now offsets.Claim }
	back := make(chan told, 10)
	s := startHalting(w, appendSink{}, func(cfg *processor.Config) {
		cfg.Hooks.WentBack = func(_ string, before, now offsets.Claim) { back <- told{before, now} }
	})
	w.next(0, 50)
	w.db.Exec(`begin;
delete from appended where o >= 20;
delete from processed_message where record_offset >= 20;
update consumer_offset set next_offset = 20, records = 20;
commit`)
	if got := await(t, back, "the database to be found gone back"); got.before.Next != 50 || got.now.Next != 20 || got.now.Epoch != got.before.Epoch+1 {
		t.Errorf("told %+v", got)
	}
	w.next(0, 50)
	s.finish()
	w.effects(50)
	if len(s.halted) != 0 {
		t.Error("it was halted")
	}
}
