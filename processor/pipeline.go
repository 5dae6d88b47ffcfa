package processor

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
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
//
// Apply must return soon after its context ends: at Postgres.TransactionTimeout,
// and DrainTimeout after the partition was revoked or the process told to stop.
// Statements on tx do that by themselves, loops and waiting of its own do not.
// One that goes on is waited for, since its goroutine cannot be ended: the log
// says "the drain took longer than its budget", and then nothing, the stop or
// the rebalance of this process hangs, and whoever claims the partition waits
// until PostgreSQL ends the idle transaction (Postgres.IdleTimeout). A second
// signal ends the program; what was not committed is done again.
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

	// Guard is what stands against a second effect. Defaults to GuardKey.
	Guard Guard
	// Fingerprint tells a repeat of a message from another message under the
	// same key. It must be the same for every copy that a producer may send.
	// Defaults to [schema.PayloadSum] of the record.
	Fingerprint func(m schema.Message[T]) int64
	// OnDuplicate, if set, is called inside the transaction for each message
	// whose key was processed before. An error is treated as one of the sink.
	OnDuplicate func(ctx context.Context, tx pgx.Tx, m schema.Message[T], d Duplicate) error
}

// Reporter is a Sink that says something of each message. ApplyReport is called
// instead of Apply; it answers with an outcome for each message of the batch in
// order, or with none at all where there is nothing to say.
type Reporter[T any] interface {
	Sink[T]
	ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]schema.Outcome, error)
}

// Suspecter is a Sink that can say, of a whole batch at once and without writing
// anything, which messages its target is likely to refuse, by their places in the
// batch. It is asked where a message at fault must be found in a batch that the
// database has refused. The answer is a suspicion only: the suspects are tried
// one by one, and where others are at fault they are found by halves.
type Suspecter[T any] interface {
	Sink[T]
	Suspects(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]int, error)
}

// Duplicate tells what is known of a message whose key was processed before.
type Duplicate struct {
	// Cause is why it came again.
	Cause offsets.Cause
	// Partition and Offset are where the key was first processed, At when by
	// the database's clock; At is zero within one batch.
	Partition int32
	Offset    int64
	At        time.Time
	// Result is the JSON that the first run has stored, nil where it stored none.
	Result []byte
}
