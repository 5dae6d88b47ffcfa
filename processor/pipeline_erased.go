package processor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// Generics end here: below New, a pipeline is these two interfaces.

// decoder turns records into the messages of a batch.
type decoder interface {
	// decode decodes and keys one record and adds its message to the batch. The
	// error is a *schema.Fault, or says that something else is unavailable.
	decode(ctx context.Context, b *batch, r *schema.Record) error
	// prepare lets the sink look at its target.
	prepare(ctx context.Context, conn *pgx.Conn) error
	// overwriter is the sink, where it can tell whether it overwrites.
	overwriter() (Overwriter, bool)
	// hears reports whether the pipeline wants to be told of duplicates.
	hears() bool
	// guardedBy is the pipeline's guard.
	guardedBy() Guard
}

// messages are the decoded part of a batch, by place.
type messages interface {
	// apply hands the messages at the places to the sink. The outcomes are one
	// for each place, or none.
	apply(ctx context.Context, tx pgx.Tx, places []int) ([]schema.Outcome, error)
	// suspects are those of the places that the sink suspects, by their number;
	// ok says that the sink can tell.
	suspects(ctx context.Context, tx pgx.Tx, places []int) (numbers []int, ok bool, err error)
	// key is the idempotency key of the message at the place.
	key(place int) schema.Key
	// duplicate tells the pipeline of a duplicate.
	duplicate(ctx context.Context, tx pgx.Tx, place int, d Duplicate) error
}

// typed is a pipeline as a decoder.
type typed[T any] struct{ Pipeline[T] }

func (t typed[T]) prepare(ctx context.Context, conn *pgx.Conn) error {
	if p, ok := any(t.Sink).(Preparer); ok {
		if err := p.Prepare(ctx, conn); err != nil {
			return err
		}
	}
	return t.checkGuard()
}

func (t typed[T]) overwriter() (Overwriter, bool) {
	o, ok := any(t.Sink).(Overwriter)
	return o, ok
}

func (t typed[T]) hears() bool { return t.OnDuplicate != nil }

func (t typed[T]) guardedBy() Guard { return t.Guard }

func (t typed[T]) decode(ctx context.Context, b *batch, r *schema.Record) error {
	m, err := t.message(ctx, r)
	if err != nil {
		return err
	}
	all, ok := b.messages.(*typedMessages[T])
	if !ok {
		all = &typedMessages[T]{pipeline: &t.Pipeline}
		b.messages = all
	}
	b.add(r, len(all.list), offsets.Entry{Key: m.ID.ID, Partition: r.Partition, Offset: r.Offset, PayloadSum: t.fingerprint(m)})
	all.list = append(all.list, m)
	return nil
}

func (t typed[T]) fingerprint(m schema.Message[T]) int64 {
	if t.Fingerprint != nil {
		return t.Fingerprint(m)
	}
	return schema.PayloadSum(m.Record)
}

// message decodes and keys one record. A panic of user code is the message's
// own fault: the same bytes would panic again wherever they are read.
func (t typed[T]) message(ctx context.Context, r *schema.Record) (m schema.Message[T], err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicFault(r, p)
		}
	}()
	m.Record = r
	if m.Body, err = t.Decode(ctx, r); err != nil {
		return m, blame(err, r, schema.ReasonDecode)
	}
	if m.ID, err = t.Key(m); err != nil {
		return m, blame(err, r, schema.ReasonKeyInvalid)
	}
	return m, nil
}

// blame makes an error of a decoder or a key the record's fault, unless it says
// that something else is unavailable.
func blame(err error, r *schema.Record, reason schema.Reason) error {
	if unavailable(err) {
		return err
	}
	return schema.AsFault(err, r, reason)
}

// unavailable reports whether an error says nothing of the message: a schema
// registry that does not answer, or the end of the context.
func unavailable(err error) bool {
	return schema.IsUnavailable(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func panicFault(r *schema.Record, p any) *schema.Fault {
	return schema.Faultf(r, schema.ReasonHandler, "panic: %v\n%s", p, debug.Stack())
}

type typedMessages[T any] struct {
	pipeline *Pipeline[T]
	list     []schema.Message[T]
}

func (t *typedMessages[T]) apply(ctx context.Context, tx pgx.Tx, places []int) (outcomes []schema.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicFault(nil, p)
		}
	}()
	batch := t.at(places)
	reporter, ok := t.pipeline.Sink.(Reporter[T])
	if !ok {
		return nil, t.pipeline.Sink.Apply(ctx, tx, batch)
	}
	outcomes, err = reporter.ApplyReport(ctx, tx, batch)
	if err == nil && len(outcomes) != 0 && len(outcomes) != len(batch) {
		err = fmt.Errorf("processor: the sink has answered %d outcomes for %d messages", len(outcomes), len(batch))
	}
	return outcomes, err
}

func (t *typedMessages[T]) suspects(ctx context.Context, tx pgx.Tx, places []int) (numbers []int, ok bool, err error) {
	s, ok := t.pipeline.Sink.(Suspecter[T])
	if !ok {
		return nil, false, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = panicFault(nil, p)
		}
	}()
	if numbers, err = s.Suspects(ctx, tx, t.at(places)); err != nil {
		return nil, true, err
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	if n := len(numbers); n > 0 && (numbers[0] < 0 || numbers[n-1] >= len(places)) {
		return nil, true, fmt.Errorf("processor: the sink suspects messages %d to %d of %d", numbers[0], numbers[n-1], len(places))
	}
	return numbers, true, nil
}

func (t *typedMessages[T]) key(place int) schema.Key { return t.list[place].ID }

func (t *typedMessages[T]) duplicate(ctx context.Context, tx pgx.Tx, place int, d Duplicate) (err error) {
	m := t.list[place]
	defer func() {
		if p := recover(); p != nil {
			err = panicFault(m.Record, p)
		}
	}()
	return t.pipeline.OnDuplicate(ctx, tx, m, d)
}

// at returns the messages at the places, without a copy where they are one run.
func (t *typedMessages[T]) at(places []int) []schema.Message[T] {
	if n := len(places); places[n-1]-places[0] == n-1 {
		return t.list[places[0] : places[n-1]+1 : places[n-1]+1]
	}
	picked := make([]schema.Message[T], len(places))
	for i, place := range places {
		picked[i] = t.list[place]
	}
	return picked
}

// check says what is missing of a pipeline.
func (p Pipeline[T]) check() error {
	var errs []error
	for name, missing := range map[string]bool{"Decode": p.Decode == nil, "Key": p.Key == nil, "Sink": p.Sink == nil} {
		if missing {
			errs = append(errs, fmt.Errorf("config: pipeline.%s is required", name))
		}
	}
	return errors.Join(append(errs, p.checkGuard())...)
}
