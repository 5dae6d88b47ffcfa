package sinks

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// Predicate says which messages a sink sees. Make it with [Condition], or fill
// it in.
type Predicate[T any] struct {
	// Text names the predicate in errors: the expression.
	Text string
	// Uses are the paths of the fields that Match reads, for the decoder.
	Uses []string
	// Match returns whether the sink sees message m, which it must not keep or
	// change. It must answer the same each time: a message is read again after
	// a crash. An error is the message's own fault only if it is a
	// [*schema.Fault].
	Match func(m *schema.Message[T]) (bool, error)
}

// Condition is the predicate of an expression that is true or false; see
// [Computed] for its language and for fields. An expression that is null for a
// message is the message's own fault, as one that fails: write `paid ?? false`.
// The fields of a tombstone read as null; `$tombstone or region == "eu"` lets
// tombstones pass.
func Condition(expression string, fields *schema.Fields) (Predicate[schema.Row], error) {
	p, err := compile(expression, fields)
	if err == nil && p.root.kind != unknown && p.root.kind != isBool {
		err = fmt.Errorf("expression %q: %s is needed, this is %s", expression, isBool, p.root.kind)
	}
	if err != nil {
		return Predicate[schema.Row]{}, fmt.Errorf("where: %w", err)
	}
	return Predicate[schema.Row]{Text: expression, Uses: p.paths, Match: func(m *schema.Message[schema.Row]) (bool, error) {
		v, err := p.run(m)
		if err != nil {
			return false, err
		}
		matches, ok := v.(bool)
		if !ok {
			return false, schema.Faultf(nil, schema.ReasonValueType, "%s is needed, this is %s", isBool, kindOf(v))
		}
		return matches, nil
	}}, nil
}

// Where returns the sink that hands on to the given one only the messages that
// match. The others are done: their key is remembered, and they have no effect
// here. In a [Tee] each sink has its own predicate.
func Where[T any](sink Sink[T], predicate Predicate[T]) *WhereSink[T] {
	return &WhereSink[T]{sink, predicate}
}

// WhereSink is what [Where] returns.
type WhereSink[T any] struct {
	sink      Sink[T]
	predicate Predicate[T]
}

// Parts returns the sink that sees the messages that match.
func (w *WhereSink[T]) Parts() []Sink[T] { return []Sink[T]{w.sink} }

// Predicate returns the predicate.
func (w *WhereSink[T]) Predicate() Predicate[T] { return w.predicate }

// Kind implements [Kinder]: it is the sink's own.
func (w *WhereSink[T]) Kind() Kind { return KindOf(w.sink) }

// guards and what let an Insert that tells duplicates be seen through a Where.
func (w *WhereSink[T]) guards() bool {
	g, ok := w.sink.(guard)
	return ok && g.guards()
}

func (w *WhereSink[T]) what() string { return w.sink.(guard).what() }

// Prepare implements [Preparer].
func (w *WhereSink[T]) Prepare(ctx context.Context, conn *pgx.Conn) error {
	if w.predicate.Match == nil {
		return errors.New("sinks: where: the predicate has no Match: make it with Condition")
	}
	if p, ok := w.sink.(Preparer); ok {
		return p.Prepare(ctx, conn)
	}
	return nil
}

// Apply implements [Sink].
func (w *WhereSink[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	_, err := w.ApplyReport(ctx, tx, batch)
	return err
}

// ApplyReport applies the messages that match and returns an outcome for each
// message of the batch, or none where the sink has none.
func (w *WhereSink[T]) ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]schema.Outcome, error) {
	matching, places, err := w.match(batch)
	if err != nil || len(matching) == 0 {
		return nil, err
	}
	some, err := applyReport(ctx, tx, w.sink, matching)
	if err != nil || len(some) == 0 {
		return nil, err
	}
	if len(some) != len(matching) {
		return nil, fmt.Errorf("sinks: %T has answered %d outcomes for %d messages", w.sink, len(some), len(matching))
	}
	all := make([]schema.Outcome, len(batch))
	for i, place := range places {
		all[place] = some[i]
	}
	return all, nil
}

// match returns the messages that match and their places.
func (w *WhereSink[T]) match(batch []schema.Message[T]) (matching []schema.Message[T], places []int, err error) {
	err = gather(batch, func(i int, m *schema.Message[T]) error {
		is, err := w.predicate.Match(m)
		if err != nil {
			return blame(err, m.Record, w.predicate.Text, "")
		}
		if is {
			matching, places = append(matching, *m), append(places, i)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("sinks: where: %w", err)
	}
	return matching, places, nil
}
