package offsets

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Errors that a caller branches on; they come wrapped, with the partition, the
// offset and both epochs in the text.
var (
	// ErrFenced means that the claim is no longer ours: another worker has
	// claimed the partition since. This is the normal end of a claim.
	ErrFenced = errors.New("fenced")
	// ErrWentBack means that the database knows less than we do: it was
	// restored, or failed over to a standby that missed the last commits. What
	// we remember must be dropped and the partition claimed again.
	ErrWentBack = errors.New("the database went back")
	// ErrNotMonotonic means that the caller asked for an advance that goes
	// nowhere or backwards, which is a fault of the caller.
	ErrNotMonotonic = errors.New("an advance must move the offset forward")
	// ErrKeyVanished means that a key which stood in the way of an insert was
	// gone when it was looked up, as after a purge; the transaction must be
	// tried again.
	ErrKeyVanished = errors.New("a key vanished while it was being admitted")
	// ErrKeyContested means that another transaction has committed a key of the
	// batch after the look for it, as where two partitions bring the same key at
	// the same time. The transaction must be rolled back, and the batch be tried
	// again by AdvanceAndAdmitContested.
	ErrKeyContested = errors.New("a key is contested by another transaction")
)

// DB is what the ledger needs of a connection; *pgx.Conn, *pgxpool.Pool and
// pgx.Tx all have it.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Options say which part of the ledger a Ledger is.
type Options struct {
	// Schema is where the ledger's tables live. Defaults to "oncestream".
	Schema string
	// Group is the consumer group, Topic the topic that it reads. Required.
	Group, Topic string
	// Handler is the name under which keys are remembered. Defaults to Group.
	Handler string
}

// Ledger is the account of one consumer group on one topic. It holds no state
// of the account itself, only the text of its statements, the handler's id, and
// how many keys it has written, which decides how they are looked for; so it may be shared by all workers of a process.
type Ledger struct {
	group, topic, handler string
	handlerID             atomic.Int32 // 0 until it is registered
	written               atomic.Int64
	sql                   statements
}

// New returns the ledger of a group and a topic. Register must be called
// before keys are admitted.
func New(o Options) *Ledger {
	if o.Schema == "" {
		o.Schema = "oncestream"
	}
	if o.Handler == "" {
		o.Handler = o.Group
	}
	return &Ledger{group: o.Group, topic: o.Topic, handler: o.Handler, sql: newStatements(o.Schema)}
}

const sqlFindHandler = `select id from $handler where name = $1`

const sqlAddHandler = `insert into $handler (name) values ($1) on conflict do nothing`

// Register looks up the handler's id, or gives it one. It must be called before
// the ledger is shared, and again when the database has gone back: to a moment
// before the handler, it has lost the id, and would give it to the next one that
// asks, whose keys would then be taken for this one's.
func (l *Ledger) Register(ctx context.Context, db DB) error {
	if l.group == "" || l.topic == "" {
		return wrap("register handler "+l.handler, fmt.Errorf("a group and a topic are required (got group %q, topic %q)", l.group, l.topic))
	}
	// The insert comes second: it would use up a number of the small id's
	// sequence each time a process starts, also when the name is known.
	for range 2 {
		var id int16
		err := db.QueryRow(ctx, l.sql.findHandler, l.handler).Scan(&id)
		if err == nil {
			l.handlerID.Store(int32(id))
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return wrap("register handler "+l.handler, err)
		}
		if _, err := db.Exec(ctx, l.sql.addHandler, l.handler); err != nil {
			return wrap("register handler "+l.handler, err)
		}
	}
	return wrap("register handler "+l.handler, pgx.ErrNoRows)
}

// id is the handler's, 0 where it is not registered.
func (l *Ledger) id() int16 {
	return int16(l.handlerID.Load()) //nolint:gosec // it is only ever set from an int16
}

func (l *Ledger) at(partition int32, offset int64) string {
	return fmt.Sprintf("%s/%d@%d", l.topic, partition, offset)
}

func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("offsets: %s: %w", operation, err)
}
