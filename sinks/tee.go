package sinks

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// Tee returns the sink that applies the given ones in their order, in the one
// transaction: the effects of all of them happen, or none. The first error ends
// the batch. Prepare prepares each that is a [Preparer] and joins their faults.
func Tee[T any](sinks ...Sink[T]) Sink[T] { return tee[T](sinks) }

type tee[T any] []Sink[T]

func (t tee[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	for _, s := range t {
		if err := s.Apply(ctx, tx, batch); err != nil {
			return err
		}
	}
	return nil
}

func (t tee[T]) Prepare(ctx context.Context, conn *pgx.Conn) error {
	var faults []error
	for _, s := range t {
		if p, ok := s.(Preparer); ok {
			faults = append(faults, p.Prepare(ctx, conn))
		}
	}
	return errors.Join(faults...)
}
