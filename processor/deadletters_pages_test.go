package processor_test

import (
	"fmt"
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// manyBad is more than two pages of the ledger's listing.
const manyBad = 1100

// resolutions replays what the filter selects, calls each between two, and
// returns how often each offset came to what.
func resolutions(t *testing.T, p *processor.Processor, opts processor.ReplayOptions, each func(n int)) map[string]int {
	t.Helper()
	seen, counts := map[int64]bool{}, map[string]int{}
	must(t, p.ReplayDeadLetters(t.Context(), offsets.DeadLetterFilter{}, opts, func(r processor.Resolved) {
		if at := r.Letter.Record.Offset; seen[at] {
			t.Errorf("%d was replayed twice", at)
		}
		seen[r.Letter.Record.Offset] = true
		counts[string(r.Resolution)]++
		if each != nil {
			each(len(seen))
		}
	}))
	return counts
}

// Proves that a replay of more dead letters than a page handles each once, also
// where it takes them out of its own listing, where nothing is taken out since
// it is a dry run, and where somebody else decides about some meanwhile: those
// of the page at hand are gone, and later ones do not come.
func TestReplayManyDeadLetters(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`alter table appended add constraint good check (id not like 'bad%')`)
	w.produce(0, numbered("bad", manyBad)...)
	cfg := w.config()
	cfg.Policy.MaxDeadLetterRate = 1
	p := newProcessor(t, cfg, texts(appendSink{}))
	toEnd(t, p)
	w.db.Exec(`alter table appended drop constraint good`)
	if got := fmt.Sprint(resolutions(t, p, processor.ReplayOptions{DryRun: true}, nil)); got != "map[applied:1100]" {
		t.Errorf("dry run: %s", got)
	}
	got := fmt.Sprint(resolutions(t, p, processor.ReplayOptions{}, func(n int) {
		if n == 100 {
			w.db.Exec(`update dead_letter set state = 'discarded', resolved_at = now() where record_offset between 200 and 209 or record_offset between 1000 and 1009`)
		}
	}))
	if got != "map[applied:1080 gone:10]" {
		t.Errorf("replayed: %s", got)
	}
	w.effects(1080)
	if open := w.db.Value(`select count(*) from dead_letter where state = 'dead'`); open != "0" {
		t.Errorf("%s dead letters are left", open)
	}
}

// Proves that a record key behind which more than a page is parked is replayed
// once, in order, up to the first that stays; and that as many are discarded.
func TestReplayManyParked(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`alter table appended add constraint good check (id not like 'bad%')`)
	records := numbered("m", manyBad)
	for i := range records {
		records[i].Key = []byte{'k', byte(i % 2)}
	}
	records[0].Value, records[1].Value, records[801].Value = []byte("bad first"), []byte("bad second"), []byte("bad third")
	w.produce(0, records...)
	cfg := w.config()
	cfg.Policy.OnError, cfg.Policy.MaxDeadLetterRate = processor.Park, 1
	p := newProcessor(t, cfg, texts(appendSink{}))
	toEnd(t, p)
	if got := fmt.Sprint(resolutions(t, p, processor.ReplayOptions{}, nil)); got != "map[failed:2 waiting:1098]" {
		t.Errorf("while the cause lasts: %s", got)
	}
	w.db.Exec(`alter table appended drop constraint good, add constraint good check (id <> 'bad third')`)
	if got := fmt.Sprint(resolutions(t, p, processor.ReplayOptions{}, nil)); got != "map[applied:950 failed:1 waiting:149]" {
		t.Errorf("afterwards: %s", got)
	}
	for parity := range 2 { // each record key is in order, the two one after the other
		if disorder := w.db.Value(`select count(*) from (select o, lag(o) over (order by seq) as before from appended where o % 2 = $1) x where o <= before`, parity); disorder != "0" {
			t.Errorf("%s of record key %d are out of order", disorder, parity)
		}
	}
	n, err := p.DiscardDeadLetters(t.Context(), offsets.DeadLetterFilter{}, "enough", func(d offsets.StoredDeadLetter) {
		if d.Record.Value != nil {
			t.Errorf("the value of %s was read", d.Record.Position())
		}
	})
	if err != nil || n != 150 {
		t.Errorf("discarded %d: %v", n, err)
	}
}
