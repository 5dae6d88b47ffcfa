package sinks

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// gather calls f for each message and returns the faults of all messages at
// once, so that the engine need not try the batch again for each of them. An
// error that is no fault of a message ends it: it concerns the batch.
func gather[T any](batch []schema.Message[T], f func(place int, m *schema.Message[T]) error) error {
	var faults schema.Faults
	for i := range batch {
		if err := f(i, &batch[i]); err != nil {
			fault, ok := errors.AsType[*schema.Fault](err)
			if !ok {
				return err
			}
			faults = append(faults, schema.AsFault(fault, batch[i].Record, fault.Reason))
		}
	}
	return faults.AsError()
}

// reporter is a [Sink] that says something of each message, as package processor
// asks for: an outcome for each message in order, or none at all.
type reporter[T any] interface {
	ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]schema.Outcome, error)
}

// applyReport applies the batch by a sink of either sort.
func applyReport[T any](ctx context.Context, tx pgx.Tx, s Sink[T], batch []schema.Message[T]) ([]schema.Outcome, error) {
	if r, ok := s.(reporter[T]); ok {
		return r.ApplyReport(ctx, tx, batch)
	}
	return nil, s.Apply(ctx, tx, batch)
}

// outcomes are those of a batch, made when the first message has one: nearly
// every batch has none.
type outcomes struct {
	size int
	list []schema.Outcome
}

func (o *outcomes) at(place int) *schema.Outcome {
	if o.list == nil {
		o.list = make([]schema.Outcome, o.size)
	}
	return &o.list[place]
}
