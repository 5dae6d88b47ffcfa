package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
)

// Guard is what stands against a second effect of a message.
type Guard string

// The guards.
const (
	// GuardKey is the ledger: keys are admitted under its primary key before the
	// sink is called, and the sink sees the messages whose key was new.
	GuardKey Guard = "key"
	// GuardConstraint is a unique constraint of the sink's own table that is made
	// of exactly the key. No key is written; the sink sees every message, and its
	// outcomes say which are duplicates. It is for a table whose rows are kept:
	// where one is deleted, its message has its effect again.
	//
	// What is given up: a duplicate has no cause (all count as the producer's), is
	// not told to OnDuplicate and not recorded, and a key that is used again for
	// another payload is a duplicate like others. No result is stored for it. The
	// key is not remembered beside the row: Keys.Retain has nothing to forget, and
	// the handler is known to no other pipeline.
	GuardConstraint Guard = "constraint"
)

// Guarding is a Sink that can be the guard. It is asked after Prepare; the error
// says why it cannot. It must call every message whose key has had its effect a
// duplicate, in this batch or any before, and let it have no further effect,
// whatever else writes the same key at the same moment.
type Guarding interface {
	Guarding() error
}

// checkGuard says why the pipeline's sink cannot be the guard that is set.
func (t typed[T]) checkGuard() error {
	if t.Guard != GuardConstraint {
		return nil
	}
	g, ok := any(t.Sink).(Guarding)
	if !ok {
		return fmt.Errorf("config: pipeline.guard constraint: a sink of type %T does not tell duplicates", t.Sink)
	}
	if err := g.Guarding(); err != nil {
		return fmt.Errorf("config: pipeline.guard constraint: %w", err)
	}
	return nil
}

// checkGuard says what is wrong with the guard, before any sink is prepared.
func (p Pipeline[T]) checkGuard() error {
	switch {
	case p.Guard != "" && p.Guard != GuardKey && p.Guard != GuardConstraint:
		return fmt.Errorf("config: pipeline.guard %q is neither key nor constraint", p.Guard)
	case p.Guard == GuardConstraint && p.OnDuplicate != nil:
		return errors.New("config: pipeline.on_duplicate is never called with guard constraint, which knows nothing of the first time")
	}
	return nil
}

// admitted are the admissions of messages whose keys nobody asks for: the sink
// is to tell.
func admitted(entries []offsets.Entry) []offsets.Admission {
	all := make([]offsets.Admission, len(entries))
	for i := range all {
		all[i].Outcome = offsets.Fresh
	}
	return all
}

// admit admits the keys, unless the sink's constraint is the guard.
func (g Guard) admit(ctx context.Context, tx pgx.Tx, ledger *offsets.Ledger, entries []offsets.Entry) ([]offsets.Admission, error) {
	if g == GuardConstraint {
		return admitted(entries), nil
	}
	return ledger.Admit(ctx, tx, entries)
}
