package processor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// Generics end here: below New, a pipeline is these two interfaces.

// decoder turns records into the messages of a batch.
type decoder interface {
	// decode adds the records of a chunk to the batch, up to the first one that
	// cannot be decoded or keyed.
	decode(ctx context.Context, b *batch, records []schema.Record)
	// prepare lets the sink look at its target.
	prepare(ctx context.Context, conn *pgx.Conn) error
}

// messages is the decoded part of a batch.
type messages interface {
	// apply hands the messages at the given places to the sink.
	apply(ctx context.Context, tx pgx.Tx, places []int) error
}

// typed is a pipeline as a decoder.
type typed[T any] struct{ Pipeline[T] }

func (t typed[T]) prepare(ctx context.Context, conn *pgx.Conn) error {
	if p, ok := any(t.Sink).(Preparer); ok {
		return p.Prepare(ctx, conn)
	}
	return nil
}

func (t typed[T]) decode(ctx context.Context, b *batch, records []schema.Record) {
	all, ok := b.messages.(*typedMessages[T])
	if !ok {
		all = &typedMessages[T]{sink: t.Sink}
		b.messages = all
	}
	for i := range records {
		m, fault := t.message(ctx, &records[i])
		if fault != nil {
			b.fault = fault
			return
		}
		all.list = append(all.list, m)
		b.add(&records[i], m.ID)
	}
}

// message decodes and keys one record. A panic of user code is the message's
// own fault: the same bytes would panic again wherever they are read.
func (t typed[T]) message(ctx context.Context, r *schema.Record) (m schema.Message[T], fault *schema.Fault) {
	defer func() {
		if p := recover(); p != nil {
			fault = panicFault(r, p)
		}
	}()
	m.Record = r
	var err error
	if m.Body, err = t.Decode(ctx, r); err != nil {
		return m, schema.AsFault(err, r, schema.ReasonDecode)
	}
	if m.ID, err = t.Key(m); err != nil {
		return m, schema.AsFault(err, r, schema.ReasonKeyInvalid)
	}
	return m, nil
}

func panicFault(r *schema.Record, p any) *schema.Fault {
	return schema.Faultf(r, schema.ReasonHandler, "panic: %v\n%s", p, debug.Stack())
}

type typedMessages[T any] struct {
	sink Sink[T]
	list []schema.Message[T]
}

func (t *typedMessages[T]) apply(ctx context.Context, tx pgx.Tx, places []int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicFault(nil, p)
		}
	}()
	return t.sink.Apply(ctx, tx, t.at(places))
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
	return errors.Join(errs...)
}

// add notes a record whose message was decoded.
func (b *batch) add(r *schema.Record, key schema.Key) {
	b.records = append(b.records, r)
	b.entries = append(b.entries, offsets.Entry{Key: key.ID, Partition: r.Partition, Offset: r.Offset, PayloadSum: schema.PayloadSum(r)})
}
