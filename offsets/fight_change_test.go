package offsets_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/oncestream/oncestream/offsets"
)

// operatorChanges is how often the operator of a fight changes a position.
const operatorChanges = 60

// TestFightChanges proves that a person may rewind and skip while workers fight:
// every advance still begins where the advance or the change before has ended, no
// key has two effects, the account adds up, and each change is written down. A
// change that came too late is refused, and nothing deadlocks.
func TestFightChanges(t *testing.T) {
	f := newFight(t)
	f.operator = &operator{fight: f, random: rand.New(rand.NewPCG(f.seed, 99))}
	if err := f.run(t); err != nil {
		t.Fatalf("seed %d: %v", f.seed, err)
	}
	for _, row := range f.db.Rows(brokenPromises) {
		t.Errorf("seed %d: %s", f.seed, row[0])
	}
	changes, err := f.ledger.Changes(t.Context(), f.db.Pool, fightPartitions*operatorChanges)
	if err != nil {
		t.Fatal(err)
	}
	o := f.operator
	if len(changes) != o.done || o.rewinds == 0 || o.done == o.rewinds || f.fenced.Load() == 0 {
		t.Errorf("seed %d: %d changes are written down, of %d rewinds in %d changes; fenced %d", f.seed, len(changes), o.rewinds, o.done, f.fenced.Load())
	}
	t.Logf("%d rewinds, %d skips, %d refused, fenced %d", o.rewinds, o.done-o.rewinds, o.refused, f.fenced.Load())
}

// operator changes positions while the workers of a fight are at it.
type operator struct {
	*fight
	random                 *rand.Rand
	done, rewinds, refused int
}

// run makes the changes, and then counts as one more partition that has ended.
func (o *operator) run(ctx context.Context, ended *sync.Map) error {
	for o.done+o.refused < operatorChanges {
		progress, err := o.ledger.Progress(ctx, o.db.Pool)
		if err != nil {
			return err
		}
		if n := len(progress); n > 0 {
			err = o.change(ctx, progress[o.random.IntN(n):])
		}
		if err != nil {
			return err
		}
	}
	ended.Store("operator", true)
	return nil
}

// change moves some partitions at once, each in its own direction.
func (o *operator) change(ctx context.Context, progress []offsets.Progress) error {
	var changes []offsets.Change
	rewinds := 0
	for _, p := range progress {
		c := offsets.Change{Partition: p.Partition, Action: offsets.Rewind, To: max(0, p.Next-o.random.Int64N(30))}
		if o.random.IntN(3) == 0 {
			c.Action, c.To = offsets.Skip, min(fightRecords, p.Next+1+o.random.Int64N(10))
		} else {
			rewinds++
		}
		changes = append(changes, c)
	}
	_, err := o.ledger.Apply(ctx, o.db.Pool, changes, offsets.Note{By: "operator", Reason: "a test"}, 0)
	if _, refused := errors.AsType[*offsets.RefusedChange](err); refused {
		o.refused++
		return nil
	}
	if err == nil {
		o.done, o.rewinds = o.done+len(changes), o.rewinds+rewinds
	}
	return err
}
