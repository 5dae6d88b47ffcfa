package processor

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// Sink writes the effects of a batch. The batch holds the messages of one
// partition whose key was new, in the order of their offsets.
//
// Apply runs inside the batch's transaction and must do nothing outside of it:
// it may be run again on the same batch after a rollback, and in several
// transactions at once. tx answers [ErrTxOwned] to Commit and Rollback; Begin
// opens a savepoint. A message that cannot be handled is reported as a
// [*schema.Fault] (or an error with Permanent() bool), which concerns that
// message alone; any other error concerns the batch.
type Sink[T any] interface {
	Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error
}

// Preparer is a Sink that looks at its target before the first batch: Prepare
// is called at the start, and its error stops the processor before anything is
// fetched.
type Preparer interface {
	Prepare(ctx context.Context, conn *pgx.Conn) error
}

// Pipeline says what happens to a record: it is decoded, its key is derived,
// and if the key is new under the handler, the sink writes its effect.
type Pipeline[T any] struct {
	// Handler is the name under which keys are remembered; a key has one effect
	// per handler. Defaults to the group's name.
	Handler string
	// Decode turns a record into a body. Required.
	Decode schema.Decoder[T]
	// Key derives the idempotency key. Required.
	Key schema.KeyFunc[T]
	// Sink writes the effects. Required.
	Sink Sink[T]
}
