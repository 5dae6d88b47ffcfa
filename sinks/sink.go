package sinks

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// Sink writes the effects of a batch inside a transaction that belongs to its
// caller. It is the interface that package processor asks for.
type Sink[T any] interface {
	// Apply writes the effects of the batch through tx, which it neither
	// commits nor rolls back. It must be able to run again on the same batch,
	// and is called from several goroutines at once, each with its own tx.
	Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error
}

// Preparer is a [Sink] that looks at its target before the first batch.
type Preparer interface {
	// Prepare reads the catalog through conn. It may be called again at any
	// time, also while batches are applied; they go on with what they began
	// with. Its errors are faults of the configuration, joined.
	Prepare(ctx context.Context, conn *pgx.Conn) error
}

var errNotPrepared = errors.New("it was not prepared: call Prepare once before the first batch")

// blame gives a fault the place where it arose; an error that is no fault of
// the message is returned as it is.
func blame(err error, r *schema.Record, field, column string) error {
	f, ok := errors.AsType[*schema.Fault](err)
	if !ok {
		return err
	}
	g := *f
	if g.Record == nil {
		g.Record = r
	}
	if g.Field == "" {
		g.Field = field
	}
	if g.Column == "" {
		g.Column = column
	}
	return &g
}
