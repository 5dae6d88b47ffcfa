package processor_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// replayLetters replays dead letters and returns what became of each.
func replayLetters(t *testing.T, p *processor.Processor, filter offsets.DeadLetterFilter, opts processor.ReplayOptions) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []string
	must(t, p.ReplayDeadLetters(ctx, filter, opts, func(r processor.Resolved) {
		all = append(all, fmt.Sprintf("%d %s", r.Letter.Record.Offset, r.Resolution))
	}))
	return strings.Join(all, ", ")
}

// Proves that dead letters are replayed through the same keys and sinks, each
// once: while the cause lasts they stay, a dry run changes nothing, afterwards
// each has its effect, a second replay and a running pipeline change nothing,
// and the account still adds up.
func TestReplayDeadLetters(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`alter table appended add constraint good check (id not like 'bad%')`)
	w.produce(0, numbered("m", 10)...)
	w.produce(0, numbered("bad", 3)...)
	w.produce(0, schema.Record{Value: []byte("bad1")}) // a repeat of a dead letter
	w.produce(0, schema.Record{Value: []byte("\xff")})
	p := newProcessor(t, w.config(), texts(appendSink{}))
	toEnd(t, p)
	if got := replayLetters(t, p, offsets.DeadLetterFilter{}, processor.ReplayOptions{}); got != "10 failed, 11 failed, 12 failed, 13 failed, 14 failed" {
		t.Errorf("while the cause lasts: %s", got)
	}
	w.db.Exec(`alter table appended drop constraint good`)
	if got := replayLetters(t, p, offsets.DeadLetterFilter{}, processor.ReplayOptions{DryRun: true}); got != "10 applied, 11 applied, 12 applied, 13 applied, 14 failed" {
		t.Errorf("dry run: %s", got)
	}
	w.effects(10)
	start(t, p)
	if got := replayLetters(t, newProcessor(t, w.config(), texts(appendSink{})), offsets.DeadLetterFilter{Reasons: []string{"check"}}, processor.ReplayOptions{}); got != "10 applied, 11 applied, 12 applied, 13 duplicate" {
		t.Errorf("afterwards: %s", got)
	}
	if got := replayLetters(t, newProcessor(t, w.config(), texts(appendSink{})), offsets.DeadLetterFilter{}, processor.ReplayOptions{}); got != "14 failed" {
		t.Errorf("a second time: %s", got)
	}
	w.produce(0, numbered("n", 10)...)
	w.waitFor(`select next_offset from consumer_offset`, "25")
	if got := w.db.Value(`select count(*) || ' ' || count(distinct id) from appended`); got != "23 23" {
		t.Errorf("effects: %s", got)
	}
	if got := w.db.Value(`select records || ' ' || dead_letters || ' ' || duplicates_producer from consumer_offset`); got != "25 1 1" {
		t.Errorf("records, dead letters, duplicates: %s", got)
	}
}

// Proves that what waits behind a parked dead letter is replayed in order with
// it, while the pipeline runs and adds to it, and that a record key whose first
// one stays keeps all of its others waiting.
func TestReplayParked(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`alter table appended add constraint good check (id not like 'bad%')`)
	cfg := w.config()
	cfg.Policy.OnError = processor.Park
	start(t, newProcessor(t, cfg, texts(appendSink{})))
	for i := range 5 {
		for _, key := range []string{"a", "b"} {
			value := fmt.Sprint(key, i)
			if i == 1 {
				value = "bad" + key
			}
			w.produce(0, schema.Record{Key: []byte(key), Value: []byte(value)})
		}
	}
	w.waitFor(`select next_offset from consumer_offset`, "10")
	w.effects(2)
	w.db.Exec(`alter table appended drop constraint good, add constraint good check (id <> 'badb')`)
	got := replayLetters(t, newProcessor(t, cfg, texts(appendSink{})), offsets.DeadLetterFilter{}, processor.ReplayOptions{})
	if want := "2 applied, 4 applied, 6 applied, 8 applied, 3 failed, 5 waiting, 7 waiting, 9 waiting"; got != want {
		t.Errorf("replayed %s, want %s", got, want)
	}
	w.produce(0, schema.Record{Key: []byte("a"), Value: []byte("a5")}, schema.Record{Key: []byte("b"), Value: []byte("b5")})
	w.waitFor(`select next_offset from consumer_offset`, "12")
	if got := w.db.Value(`select string_agg(id, ' ' order by seq) from appended`); got != "a0 b0 bada a2 a3 a4 a5" {
		t.Errorf("effects in order: %s", got)
	}
}

// Proves that a corrected payload is handled in place of the record's, which is
// kept; that a value which was not kept is read again at its position; and that
// what is discarded is never handled.
func TestReplayFixedAndByPosition(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`alter table appended add constraint good check (id not like 'bad%')`)
	large := "bad" + strings.Repeat("x", 2000)
	w.produce(0, schema.Record{Value: []byte(large)}, schema.Record{Value: []byte("bad")}, schema.Record{Value: []byte("bad too")})
	cfg := w.config()
	cfg.Policy.MaxDeadLetterValue = 1000
	p := newProcessor(t, cfg, texts(appendSink{}))
	toEnd(t, p)
	n, err := p.DiscardDeadLetters(t.Context(), offsets.DeadLetterFilter{Reasons: []string{"check"}}, "of no use", func(offsets.StoredDeadLetter) {})
	if err != nil || n != 3 {
		t.Fatalf("discarded %d: %v", n, err)
	}
	w.db.Exec(`update dead_letter set state = 'dead' where record_offset < 2`)
	fix := func(value []byte) ([]byte, error) { return bytes.Replace(value, []byte("bad"), []byte("good"), 1), nil }
	if got := replayLetters(t, p, offsets.DeadLetterFilter{}, processor.ReplayOptions{Fix: fix}); got != "0 applied, 1 applied" {
		t.Errorf("replayed %s", got)
	}
	if got := w.db.Value(`select string_agg(length(id)::text, ' ' order by o) from appended`); got != "2004 4" {
		t.Errorf("lengths: %s", got)
	}
	if got := w.db.Value(`select state || ' ' || resolution || ' ' || convert_from(record_value, 'UTF8') || ' ' || convert_from(fixed_value, 'UTF8') from dead_letter where record_offset = 1`); got != "replayed applied bad good" {
		t.Errorf("kept: %s", got)
	}
}
