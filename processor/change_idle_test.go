package processor_test

import (
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// A worker that has nothing to read follows a rewind, too: it does not wait for the
// next record.
func TestRewindWhileIdle(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 50)...)
	fenced := make(chan offsets.Claim, 1)
	cfg := w.config()
	cfg.Hooks = processor.Hooks{Fenced: func(_ string, c offsets.Claim) { fenced <- c }}
	r := start(t, newProcessor(t, cfg, texts(appendSink{})))
	w.waitFor(`select next_offset from consumer_offset`, "50")
	ledger := offsets.New(offsets.Options{Schema: w.db.Schema, Group: w.group, Topic: w.topic})
	_, err := ledger.Apply(t.Context(), w.db.Pool, []offsets.Change{{Action: offsets.Rewind, To: 20}}, offsets.Note{By: "ada", Reason: "a test"}, patience)
	must(t, err)
	await(t, fenced, "the worker to be fenced")
	w.waitFor(`select format('%s %s %s', next_offset, records, duplicates_redelivery) from consumer_offset`, "50 80 30")
	r.finish()
	w.effects(50)
}
