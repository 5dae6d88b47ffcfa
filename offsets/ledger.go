package offsets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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
	// gone when it was looked up; the transaction must be tried again.
	ErrKeyVanished = errors.New("a key vanished while it was being admitted")
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
// of the account itself, only the text of its statements and the handler's id,
// so it may be shared by all workers of a process.
type Ledger struct {
	group, topic, handler string
	handlerID             int16
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

// Register looks up the handler's id, or gives it one. It must be called once,
// before the ledger is shared.
func (l *Ledger) Register(ctx context.Context, db DB) error {
	// The insert comes second: it would use up a number of the small id's
	// sequence each time a process starts, also when the name is known.
	for range 2 {
		err := db.QueryRow(ctx, l.sql.findHandler, l.handler).Scan(&l.handlerID)
		if !errors.Is(err, pgx.ErrNoRows) {
			return wrap("register handler "+l.handler, err)
		}
		if _, err := db.Exec(ctx, l.sql.addHandler, l.handler); err != nil {
			return wrap("register handler "+l.handler, err)
		}
	}
	return wrap("register handler "+l.handler, pgx.ErrNoRows)
}

// Position is how far an advance goes.
type Position struct {
	// Next is one past the last offset passed.
	Next int64
	// LeaderEpoch is that of the last record passed, -1 where unknown.
	LeaderEpoch int32
	// Time is the timestamp of the last record passed, zero where none.
	Time time.Time
	// Records is how many records are passed. Gaps of the log (compaction,
	// transaction markers, aborted records) are not records.
	Records int64
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

// statements is all SQL on our own tables. The names are qualified instead of
// found by search_path, so that a user's table called "outbox" or "handler" is
// never taken for ours nor ours for the user's.
type statements struct {
	findHandler, addHandler                         string
	start, started                                  string
	claim, identity, reclaim, release, halt, holder string
	advance, look, account                          string
	admit, find                                     string
	progress                                        string
}

func newStatements(schema string) statements {
	table := func(name string) string { return pgx.Identifier{schema, name}.Sanitize() }
	r := strings.NewReplacer(
		"$consumer_offset", table("consumer_offset"),
		"$processed_message", table("processed_message"),
		"$handler", table("handler"),
	)
	return statements{
		findHandler: r.Replace(`select id from $handler where name = $1`),
		addHandler:  r.Replace(`insert into $handler (name) values ($1) on conflict do nothing`),
		start:       r.Replace(sqlStart),
		started:     r.Replace(`select exists (select from $consumer_offset where consumer_group = $1 and topic = $2)`),
		claim:       r.Replace(sqlClaim),
		identity:    r.Replace(sqlIdentity),
		reclaim:     r.Replace(sqlReclaim),
		release:     r.Replace(sqlRelease),
		halt:        r.Replace(sqlHalt),
		holder:      r.Replace(sqlHolder),
		advance:     r.Replace(sqlAdvance),
		look:        r.Replace(sqlLook),
		account:     r.Replace(sqlAccount),
		admit:       r.Replace(sqlAdmit),
		find:        r.Replace(sqlFind),
		progress:    r.Replace(sqlProgress),
	}
}
