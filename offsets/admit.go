package offsets

import (
	"context"
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
	Replay     Cause = "replay"     // we ourselves, reading a range again
)

// Admission is the answer to an entry.
type Admission struct {
	Outcome Outcome
	// Cause, First and Result are set for duplicates and conflicts: First is
	// the entry that was admitted (its Partition and Offset), Result the JSON
	// that its handler stored, nil where it stored none.
	Cause       Cause
	First       Entry
	ProcessedAt time.Time
	Result      []byte
}

// Counts sums up admissions.
type Counts struct {
	Fresh, Producer, Redelivery, Conflicts int64
}

// Count sums up admissions.
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
		default:
			c.Producer++
		}
	}
	return c
}

// The rows are inserted in the order of their keys, so that the transactions of
// two partitions that share keys wait for each other in one order and cannot
// deadlock.
const sqlAdmit = `
insert into $processed_message (key, record_offset, payload_sum, partition, handler)
select e.key, e.record_offset, e.payload_sum, $4, $5
from unnest($1::uuid[], $2::bigint[], $3::bigint[]) as e (key, record_offset, payload_sum)
order by e.key
on conflict do nothing
returning key`

const sqlFind = `
select key, partition, record_offset, payload_sum, processed_at, result
from $processed_message
where handler = $2 and key = any ($1::uuid[])`

const sqlAccount = `
update $consumer_offset
set duplicates_producer = duplicates_producer + $5, duplicates_redelivery = duplicates_redelivery + $6
where consumer_group = $1 and topic = $2 and partition = $3 and epoch = $4`

// Admit inserts the keys of a batch and answers for each entry, in order,
// whether it was new. The entries are of one partition and in the order of
// their offsets. The guard is the table's primary key: an entry is fresh if
// and only if its insert was the one that succeeded, and a key that another
// transaction is inserting right now is waited for.
//
// Keys that repeat within the entries are folded first: the lowest offset asks,
// and the others share its answer.
func (l *Ledger) Admit(ctx context.Context, tx pgx.Tx, entries []Entry) ([]Admission, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	f := fold(entries)
	rows, err := tx.Query(ctx, l.sql.admit, f.args(l.handlerID)...)
	if err == nil {
		err = f.readInserted(rows)
	}
	if err != nil {
		return nil, l.admitError(f, err)
	}
	return l.resolve(ctx, tx, f)
}

func (l *Ledger) admitError(f *folded, err error) error {
	first := f.entries[0]
	return wrap(fmt.Sprintf("admit %d keys from %s", len(f.order), l.at(first.Partition, first.Offset)), err)
}

// resolve looks up the keys that were not inserted and checks that every key
// is accounted for: inserted + found = sent.
func (l *Ledger) resolve(ctx context.Context, tx pgx.Tx, f *folded) ([]Admission, error) {
	if lost := f.lost(); len(lost) > 0 {
		rows, err := tx.Query(ctx, l.sql.find, lost, l.handlerID)
		if err == nil {
			err = f.readFound(rows)
		}
		if err != nil {
			return nil, l.admitError(f, err)
		}
	}
	if f.inserted+len(f.found) != len(f.order) {
		return nil, l.admitError(f, fmt.Errorf("%w: %d inserted, %d found", ErrKeyVanished, f.inserted, len(f.found)))
	}
	return f.admissions(), nil
}

// Account adds a batch's duplicates to the partition's account, inside the
// batch's transaction.
func (l *Ledger) Account(ctx context.Context, tx pgx.Tx, c Claim, n Counts) error {
	if n.Producer == 0 && n.Redelivery == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, l.sql.account, l.group, l.topic, c.Partition, c.Epoch, n.Producer, n.Redelivery)
	return wrap("account for the duplicates of "+l.at(c.Partition, c.Next), err)
}

// AdvanceAndAdmit is Advance and then Admit in one round trip. The advance is
// the first statement that the server sees; if it does not match, what the
// second has inserted goes with the transaction, which the caller rolls back.
func (l *Ledger) AdvanceAndAdmit(ctx context.Context, tx pgx.Tx, c Claim, to Position, entries []Entry) (Claim, []Admission, error) {
	if len(entries) == 0 || to.Next <= c.Next {
		next, err := l.Advance(ctx, tx, c, to)
		return next, nil, err
	}
	f := fold(entries)
	moved, err := l.sendBoth(ctx, tx, c, to, f)
	if err != nil {
		return c, nil, err
	}
	next, err := l.advanced(ctx, tx, c, to, moved)
	if err != nil {
		return c, nil, err
	}
	admissions, err := l.resolve(ctx, tx, f)
	return next, admissions, err
}

// sendBoth sends the advance and the keys and reads both answers.
func (l *Ledger) sendBoth(ctx context.Context, tx pgx.Tx, c Claim, to Position, f *folded) (moved int64, err error) {
	var batch pgx.Batch
	batch.Queue(l.sql.advance, l.advanceArgs(c, to)...)
	batch.Queue(l.sql.admit, f.args(l.handlerID)...)
	results := tx.SendBatch(ctx, &batch)
	defer func() {
		if closeErr := results.Close(); err == nil && closeErr != nil {
			err = l.admitError(f, closeErr)
		}
	}()
	tag, err := results.Exec()
	if err != nil || tag.RowsAffected() != 1 {
		return 0, wrap("advance "+l.at(c.Partition, c.Next), err)
	}
	rows, err := results.Query()
	if err == nil {
		err = f.readInserted(rows)
	}
	if err != nil {
		return 0, l.admitError(f, err)
	}
	return 1, nil
}
