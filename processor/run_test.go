package processor_test

import "testing"

// Proves the main job: every record has its effect once, a producer's
// duplicates have none, a second run and a replay change nothing, and the
// account adds up.
func TestRunToEnd(t *testing.T) {
	w := newWorld(t, 3)
	for p := range int32(3) {
		w.produce(p, numbered("a", 1000)...) // the same keys in each partition
		w.produce(p, numbered(string('b'+p), 500)...)
	}
	p := newProcessor(t, w.config(), texts(appendSink{}))
	toEnd(t, p)
	w.effects(2500)
	toEnd(t, p)
	if r := replayed(t, p); r.Records != 4500 || r.Duplicates != 4500 {
		t.Errorf("replayed %v", r)
	}
	w.effects(2500)
	if got, want := w.account(), "records 4500, producer duplicates 2000, redelivered 0, offsets 4500"; got != want {
		t.Errorf("account: %s, want %s", got, want)
	}
}
