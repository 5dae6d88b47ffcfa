package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// The states of a dead letter.
const (
	StateDead      = "dead"      // it waits for a decision
	StateReplayed  = "replayed"  // its message was handled after all
	StateDiscarded = "discarded" // somebody decided that it never will be
)

// StoredDeadLetter is a dead letter as the ledger keeps it.
type StoredDeadLetter struct {
	ID int64
	// Record is the record that was set aside. Its Value is nil where it was
	// too large to keep, see ByPosition, and where the filter has left it out.
	Record                               schema.Record
	Reason                               schema.Reason
	Detail, SQLState, Column, Constraint string
	// ValueSize is the size of the value in bytes, -1 for a tombstone.
	ValueSize int64
	// ByPosition says that the value was too large to keep, and can be read
	// again at the record's position.
	ByPosition bool
	Parked     bool
	State      string
	// CreatedAt and ResolvedAt are by the database's clock; ResolvedAt is zero
	// while the state is dead.
	CreatedAt, ResolvedAt time.Time
	// Resolution is what came of it.
	Resolution string
	// FixedValue is the payload that was replayed in place of the record's;
	// Fixed says that there is one.
	FixedValue []byte
	Fixed      bool
}

// At is a position of the ledger's topic.
type At struct {
	Partition int32
	Offset    int64
}

const sqlSetAsideAt = `
select partition, record_offset from $dead_letter
where consumer_group = $1 and topic = $2 and handler = $3`

// SetAsideAt returns the positions of all dead letters, whatever was decided
// about them.
func (l *Ledger) SetAsideAt(ctx context.Context, db DB) (map[At]bool, error) {
	rows, err := db.Query(ctx, l.sql.setAsideAt, l.group, l.topic, l.id())
	if err != nil {
		return nil, wrap("list the positions of dead letters of "+l.topic, err)
	}
	positions := map[At]bool{}
	var at At
	_, err = pgx.ForEachRow(rows, []any{&at.Partition, &at.Offset}, func() error {
		positions[at] = true
		return nil
	})
	return positions, wrap("list the positions of dead letters of "+l.topic, err)
}

const sqlLock = `select 1 from $consumer_offset where consumer_group = $1 and topic = $2 and partition = $3 for update`

// Lock takes the row of the partition until the transaction ends, as an advance
// does: no worker passes a batch of the partition meanwhile. Who resolves dead
// letters takes it first.
func (l *Ledger) Lock(ctx context.Context, tx pgx.Tx, partition int32) error {
	var one int
	err := tx.QueryRow(ctx, l.sql.lock, l.group, l.topic, partition).Scan(&one)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errors.New("the group has no position in this partition")
	}
	return wrap(fmt.Sprintf("lock %s/%d", l.topic, partition), err)
}

const (
	sqlResolve = `
update $dead_letter set state = $2, resolution = $3, fixed_value = $4, resolved_at = now()
where id = $1 and state = 'dead'`

	sqlResettle = `
update $consumer_offset
set dead_letters = dead_letters - 1, duplicates_producer = duplicates_producer + $4
where consumer_group = $1 and topic = $2 and partition = $3`
)

// Resolve ends the wait of a dead letter, inside a transaction that holds Lock,
// and reports whether it was still waiting. A replayed message leaves the
// account of dead letters: it was applied, or is a duplicate.
func (l *Ledger) Resolve(ctx context.Context, tx pgx.Tx, d *StoredDeadLetter, state, resolution string, duplicate bool, fixed []byte) (bool, error) {
	operation := fmt.Sprintf("resolve dead letter %d (%s)", d.ID, d.Record.Position())
	tag, err := tx.Exec(ctx, l.sql.resolve, d.ID, state, storable(resolution), fixed)
	if err != nil || tag.RowsAffected() == 0 || state != StateReplayed {
		return err == nil && tag.RowsAffected() == 1, wrap(operation, err)
	}
	duplicates := 0
	if duplicate {
		duplicates = 1
	}
	_, err = tx.Exec(ctx, l.sql.resettle, l.group, l.topic, d.Record.Partition, duplicates)
	return err == nil, wrap(operation, err)
}
