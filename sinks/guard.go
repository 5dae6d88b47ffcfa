package sinks

import (
	"errors"
	"fmt"
)

// guarding is a sink whose constraint can be the only guard of a pipeline, as
// package processor asks for.
type guarding interface {
	Guarding() error
}

// Guarding says why the table's constraint cannot be the only guard against a
// second effect, and nil where it can: OnConflict must be set to
// [ConflictDuplicate], so that an index which is dropped later stops the sink
// instead of the guard. The caller must have taken the idempotency key from
// exactly the KeyFields. It can be asked after Prepare.
func (s *Insert[T]) Guarding() error {
	switch {
	case s.plan.Load() == nil:
		return fmt.Errorf("sinks: %s: %w", s.what(), errNotPrepared)
	case s.OnConflict != ConflictDuplicate:
		return fmt.Errorf("sinks: %s: set on_conflict to duplicate, for which the table needs a unique index on exactly the columns of the key", s.what())
	}
	return nil
}

// Guarding says why the first sink cannot be the only guard, behind which the
// others see only what is new.
func (t *TeeSink[T]) Guarding() error {
	if len(t.sinks) == 0 {
		return errors.New("sinks: a tee without sinks tells no duplicates")
	}
	return guardingOf(t.sinks[0])
}

// Guarding is that of the sink.
func (r *RefreshSink[T]) Guarding() error { return guardingOf(r.sink) }

// guardingOf asks a sink of either sort. A [Where] lets messages pass by its
// sink, which then tells nothing of them.
func guardingOf[T any](s Sink[T]) error {
	if g, ok := s.(guarding); ok {
		return g.Guarding()
	}
	return fmt.Errorf("sinks: the first sink must be an insert of every message, whose unique index tells duplicates; it is %s", KindOf(s))
}
