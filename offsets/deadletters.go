package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
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
	// too large to keep, see ByPosition.
	Record                               schema.Record
	Reason                               schema.Reason
	Detail, SQLState, Column, Constraint string
	// ValueSize is the size of the value in bytes, -1 for a tombstone.
	ValueSize int64
	Parked    bool
	State     string
	// CreatedAt and ResolvedAt are by the database's clock; ResolvedAt is zero
	// while the state is dead.
	CreatedAt, ResolvedAt time.Time
	// Resolution is what came of it.
	Resolution string
	// FixedValue is the payload that was replayed in place of the record's.
	FixedValue []byte
}

// ByPosition reports whether the value is kept by the record's position only.
func (d *StoredDeadLetter) ByPosition() bool { return d.Record.Value == nil && d.ValueSize >= 0 }

// DeadLetterFilter selects dead letters; the zero filter selects all that wait
// for a decision.
type DeadLetterFilter struct {
	// IDs, Reasons and Partitions select those named; empty means all.
	IDs        []int64
	Reasons    []string
	Partitions []int32
	// Since and Until bound the time at which they were set aside, by the
	// database's clock; zero means no bound.
	Since, Until time.Time
	// States are those wanted. Defaults to StateDead.
	States []string
	// RecordKey selects those of one record key; nil means all.
	RecordKey []byte
	// Limit is how many are returned at most. Defaults to 1000.
	Limit int
}

const sqlDeadLetters = `
select id, partition, record_offset, topic_id, reason, detail, coalesce(sqlstate, ''), coalesce(column_name, ''), coalesce(constraint_name, ''),
  record_time, record_key, record_value, coalesce(value_size, -1), headers, parked, state, created_at, coalesce(resolved_at, '0001-01-01 00:00:00Z'),
  coalesce(resolution, ''), fixed_value
from $dead_letter
where consumer_group = $1 and topic = $2 and handler = $3
  and ($4::bigint[] is null or id = any ($4)) and ($5::text[] is null or reason = any ($5)) and ($6::int[] is null or partition = any ($6))
  and ($7::timestamptz is null or created_at >= $7) and ($8::timestamptz is null or created_at < $8)
  and state = any ($9) and ($10::bytea is null or record_key = $10)
order by partition, record_offset
limit $11`

// DeadLetters returns the dead letters of this group, topic and handler that
// the filter selects, by partition and offset.
func (l *Ledger) DeadLetters(ctx context.Context, db DB, f DeadLetterFilter) ([]StoredDeadLetter, error) {
	if len(f.States) == 0 {
		f.States = []string{StateDead}
	}
	if f.Limit == 0 {
		f.Limit = 1000
	}
	rows, err := db.Query(ctx, l.sql.deadLetters, l.group, l.topic, l.handlerID, emptyIsNull(f.IDs), emptyIsNull(f.Reasons), emptyIsNull(f.Partitions),
		zeroIsNull(f.Since), zeroIsNull(f.Until), f.States, f.RecordKey, f.Limit)
	if err != nil {
		return nil, wrap("list the dead letters of "+l.topic, err)
	}
	letters, err := pgx.CollectRows(rows, l.scanDeadLetter)
	return letters, wrap("list the dead letters of "+l.topic, err)
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
	rows, err := db.Query(ctx, l.sql.setAsideAt, l.group, l.topic, l.handlerID)
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

func (l *Ledger) scanDeadLetter(row pgx.CollectableRow) (StoredDeadLetter, error) {
	d := StoredDeadLetter{Record: schema.Record{Topic: l.topic, LeaderEpoch: -1}}
	var headers []byte
	r := &d.Record
	err := row.Scan(&d.ID, &r.Partition, &r.Offset, (*uuid.UUID)(&r.TopicID), &d.Reason, &d.Detail, &d.SQLState, &d.Column, &d.Constraint,
		&r.Time, &r.Key, &r.Value, &d.ValueSize, &headers, &d.Parked, &d.State, &d.CreatedAt, &d.ResolvedAt, &d.Resolution, &d.FixedValue)
	if err != nil {
		return d, err
	}
	r.Headers, err = decodeHeaders(headers)
	return d, err
}

func emptyIsNull[E any](list []E) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

func zeroIsNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
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
