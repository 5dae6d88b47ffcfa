package sinks

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// Tee returns the sink that applies the given ones in their order, in the one
// transaction: the effects of all of them happen, or none. The first error ends
// the batch. Prepare prepares each that is a [Preparer] and joins their faults.
//
// A sink sees only the messages that no sink before it has called a duplicate:
// the effects of a duplicate are all there, for they came in one transaction
// with the row that was met. So an [Insert] that tells duplicates must not stand
// behind a sink that adds: Prepare refuses it. Code of users, such as [Each],
// cannot be looked into: it too belongs behind the Insert.
//
// The outcomes of the sinks become one for each message; of two results the
// later sink's is kept.
func Tee[T any](sinks ...Sink[T]) *TeeSink[T] { return &TeeSink[T]{sinks} }

// TeeSink is what [Tee] returns.
type TeeSink[T any] struct{ sinks []Sink[T] }

// Parts returns the sinks in their order.
func (t *TeeSink[T]) Parts() []Sink[T] { return t.sinks }

// Kind is the worst of the parts' kinds. A Tee of no sinks sets state.
func (t *TeeSink[T]) Kind() Kind {
	worst := SetState
	for _, s := range t.sinks {
		if k := KindOf(s); k.worse(worst) {
			worst = k
		}
	}
	return worst
}

// Apply implements [Sink].
func (t *TeeSink[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	_, err := t.ApplyReport(ctx, tx, batch)
	return err
}

// ApplyReport applies the batch and returns an outcome for each message, or none
// where no sink has one.
func (t *TeeSink[T]) ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]schema.Outcome, error) {
	all := outcomes{size: len(batch)}
	rest, places := batch, []int(nil) // places is nil while rest is the batch
	for _, s := range t.sinks {
		if len(rest) == 0 && len(batch) > 0 {
			break
		}
		some, err := applyReport(ctx, tx, s, rest)
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			continue
		}
		if len(some) != len(rest) {
			return nil, fmt.Errorf("sinks: %T has answered %d outcomes for %d messages", s, len(some), len(rest))
		}
		all.merge(some, places)
		rest, places = fresh(batch, all.list)
	}
	return all.list, nil
}

// merge adds the outcomes of the messages at the places; nil means all.
func (o *outcomes) merge(some []schema.Outcome, places []int) {
	for i, outcome := range some {
		if places != nil {
			i = places[i]
		}
		to := o.at(i)
		to.Duplicate = to.Duplicate || outcome.Duplicate
		to.Stale = to.Stale || outcome.Stale
		if outcome.Result != nil {
			to.Result = outcome.Result
		}
	}
}

// fresh returns the messages that are no duplicates, and their places.
func fresh[T any](batch []schema.Message[T], all []schema.Outcome) (rest []schema.Message[T], places []int) {
	places = []int{}
	for i := range batch {
		if !all[i].Duplicate {
			rest, places = append(rest, batch[i]), append(places, i)
		}
	}
	return rest, places
}

// Prepare implements [Preparer].
func (t *TeeSink[T]) Prepare(ctx context.Context, conn *pgx.Conn) error {
	var faults []error
	for _, s := range t.sinks {
		if p, ok := s.(Preparer); ok {
			faults = append(faults, p.Prepare(ctx, conn))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return t.checkOrder()
}

// guard is a sink that may call a message a duplicate.
type guard interface {
	guards() bool
	what() string
}

// guards and what let a Tee stand within a Tee.
func (t *TeeSink[T]) guards() bool { return t.guard() != nil }

func (t *TeeSink[T]) what() string { return t.guard().what() }

func (t *TeeSink[T]) guard() guard {
	for _, s := range t.sinks {
		if g, ok := s.(guard); ok && g.guards() {
			return g
		}
	}
	return nil
}

// checkOrder refuses a guard that comes too late: what was added before it for a
// duplicate is there twice.
func (t *TeeSink[T]) checkOrder() error {
	var faults []error
	adder := -1
	for i, s := range t.sinks {
		if g, ok := s.(guard); ok && g.guards() && adder >= 0 {
			faults = append(faults, fmt.Errorf(
				"sinks: %s tells duplicates, but sink %d of the tee (%s) has added their effects again by then: put the insert before it, or set its OnConflict to error",
				g.what(), adder+1, KindOf(t.sinks[adder])))
		}
		if adder < 0 && KindOf(s) == Accumulate {
			adder = i
		}
	}
	return errors.Join(faults...)
}
