package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Entry is a key that asks to be admitted, with the record that brings it.
type Entry struct {
	Key       [16]byte
	Partition int32
	Offset    int64
	// PayloadSum tells a repeat of the same message from another message under
	// the same key.
	PayloadSum int64
}

// Outcome is what became of an entry.
type Outcome uint8

// The outcomes.
const (
	// Fresh keys are new: their effect belongs into this transaction.
	Fresh Outcome = iota + 1
	// Duplicate keys have had their effect.
	Duplicate
	// Conflict means that the key was used before for another payload.
	Conflict
)

// Cause is why a key comes again.
type Cause string

// The causes of a duplicate.
const (
	Redelivery Cause = "redelivery" // the broker: the same position again
	Producer   Cause = "producer"   // the producer: another position
	Replay     Cause = "replay"     // we ourselves, reading a range again; Admit never answers it
)

// Admission is the answer to an entry.
type Admission struct {
	Outcome Outcome
	// Cause is set for duplicates.
	Cause Cause
	// First, for duplicates and conflicts, is the entry that was admitted.
	First Entry
	// ProcessedAt and Result are those of First: when its transaction began, by
	// the database's clock, and the JSON that its handler stored, nil where it
	// stored none. Both are unset where First is of the same call, since its
	// effect is still to come.
	ProcessedAt time.Time
	Result      []byte
}

// Counts sums up admissions: Producer and Redelivery are the duplicates by their
// cause, DeadLetters the records that were set aside beside them.
type Counts struct {
	Fresh, Producer, Redelivery, Conflicts, DeadLetters int64
}

// Count counts each admission once; a Replay is not counted, as it passes nothing.
func Count(admissions []Admission) Counts {
	var c Counts
	for i := range admissions {
		switch a := &admissions[i]; {
		case a.Outcome == Fresh:
			c.Fresh++
		case a.Outcome == Conflict:
			c.Conflicts++
		case a.Cause == Redelivery:
			c.Redelivery++
		case a.Cause == Producer:
			c.Producer++
		}
	}
	return c
}

// The rows are inserted in the order of their keys, so that the transactions of
// two partitions that share keys wait for each other in one order and cannot
// deadlock.
const (
	sqlAdmit = sqlAdmitSelect + sqlAdmitInsert

	sqlAdmitSelect = `
insert into $processed_message (key, record_offset, payload_sum, partition, handler)
select e.key, e.record_offset, e.payload_sum, $4, $5
from unnest($1::uuid[], $2::bigint[], $3::bigint[]) as e (key, record_offset, payload_sum)`

	sqlAdmitInsert = `
order by e.key
on conflict do nothing
returning key`
)

// sqlAdmitAdvanced inserts nothing if the advance before it, whose answer is
// not known yet when this is sent, has moved no row. Without the condition a
// fenced worker would hold the keys of the very records that the new owner is
// about to handle, and one that stops right here would make the owner wait.
const sqlAdmitAdvanced = sqlAdmitSelect + `
where exists (
  select from $consumer_offset
  where consumer_group = $6 and topic = $7 and partition = $4 and epoch = $8 and next_offset = $9
)` + sqlAdmitInsert

// Admit inserts the keys of a batch and answers for each entry, in order,
// whether it was new. The entries must be of one partition and in the order of
// their offsets. The guard is the table's primary key: an entry is fresh if
// and only if its insert was the one that succeeded, and a key that another
// transaction is inserting right now is waited for.
//
// Keys that repeat within the entries are folded first: the lowest offset asks,
// and the others share its answer. A Conflict is an answer, not an error: its
// key was used for another payload, at whatever position.
//
// Call it once in a transaction: the order of the keys, which keeps
// transactions from deadlocks, is that of one call. After an error, of which
// ErrKeyVanished is one, the transaction must be rolled back.
func (l *Ledger) Admit(ctx context.Context, tx pgx.Tx, entries []Entry) ([]Admission, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	f, err := l.fold(entries, entries[0].Partition)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, l.sql.admit, f.args(l.id())...)
	if err == nil {
		err = f.readInserted(rows)
	}
	if err != nil {
		return nil, l.admitError(f, err)
	}
	return l.resolve(ctx, tx, f)
}

// fold checks what no statement would: a key under handler 0 would be shared by
// all handlers that forgot to register, and entries out of order would let a
// later record stand for the first one.
func (l *Ledger) fold(entries []Entry, partition int32) (*folded, error) {
	f := newFolded(entries)
	if l.id() == 0 {
		return nil, l.admitError(f, errors.New("the handler has no id yet; call Register first"))
	}
	for i := range entries {
		if entries[i].Partition != partition {
			return nil, l.admitError(f, fmt.Errorf("entry %d is of partition %d; all must be of partition %d", i, entries[i].Partition, partition))
		}
		if i > 0 && entries[i].Offset < entries[i-1].Offset {
			return nil, l.admitError(f, fmt.Errorf("entry %d is at offset %d, behind %d; sort the entries by offset", i, entries[i].Offset, entries[i-1].Offset))
		}
	}
	return f, nil
}

func (l *Ledger) admitError(f *folded, err error) error {
	first := f.entries[0]
	return wrap(fmt.Sprintf("admit %d keys from %s", len(f.order), l.at(first.Partition, first.Offset)), err)
}

// resolve looks up the keys that were not inserted and checks that every key
// is accounted for: inserted + found = sent.
func (l *Ledger) resolve(ctx context.Context, tx pgx.Tx, f *folded) ([]Admission, error) {
	if lost := f.rest(); len(lost) > 0 {
		rows, err := tx.Query(ctx, l.sql.find[l.findPlan(len(lost))], l.findArgs(f, lost)...)
		if err == nil {
			err = f.readFound(rows)
		}
		if err != nil {
			return nil, l.admitError(f, err)
		}
	}
	if f.inserted+len(f.found) != len(f.order) {
		return nil, l.admitError(f, fmt.Errorf("%w: %d inserted + %d found; try the transaction again", ErrKeyVanished, f.inserted, len(f.found)))
	}
	l.written.Add(int64(f.inserted))
	return f.admissions(), nil
}
