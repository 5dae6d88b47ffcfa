package processor_test

import (
	"errors"
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// The first start that names an environment labels the ledger; one of another
// environment, or of none, is refused before it has read or written anything,
// and so is a replay. After a person has adopted the label it starts.
func TestEnvironment(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 5)...)
	in := func(environment string) *processor.Processor {
		cfg := w.config()
		cfg.Environment = environment
		return newProcessor(t, cfg, texts(appendSink{}))
	}
	toEnd(t, in("")) // nobody has named one yet
	toEnd(t, in("production"))
	w.produce(0, numbered("n", 5)...)
	for _, other := range []string{"staging", ""} {
		for what, err := range map[string]error{"run": tryToEnd(t, in(other)), "replay": tryReplay(t, in(other))} {
			refused, ok := errors.AsType[*offsets.OtherEnvironment](err)
			if !ok || *refused != (offsets.OtherEnvironment{Ledger: "production", Pipeline: other}) {
				t.Errorf("%s as %q: got %v", what, other, err)
			}
		}
	}
	w.effects(5)
	ledger := offsets.New(offsets.Options{Schema: w.db.Schema, Group: w.group, Topic: w.topic})
	_, err := ledger.AdoptEnvironment(t.Context(), w.db.Pool, "staging", offsets.Note{By: "ada", Reason: "a clone"})
	must(t, err)
	toEnd(t, in("staging"))
	w.effects(10)
}

func tryReplay(t *testing.T, p *processor.Processor) error {
	t.Helper()
	_, err := p.Replay(t.Context(), processor.Range{})
	return err
}
