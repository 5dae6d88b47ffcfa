package offsets

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// AdvanceAndAdmit advances the claim and admits the keys of a batch: the fast way,
// for keys that no other partition is likely to bring at the same moment. In one
// round trip it sends the advance, which is the first statement that the server
// sees, and a look for the keys. Those that are known are answered from what was
// found; the others are copied into the table, which costs the server two thirds
// of an insert that resolves conflicts.
//
// The look is a shortcut and never the guard: it does not see what another
// transaction is writing. The copy does, by the primary key, and waits for it.
// Where that was committed, the answer is ErrKeyContested: the transaction must
// be rolled back, and the batch be tried again by AdvanceAndAdmitContested.
//
// The entries must be in the order of their offsets and lie between the claim's
// Next and to.Next: a batch that begins before its claim would do again what has
// been passed. The answers are those of Admit, the other errors those of Advance.
func (l *Ledger) AdvanceAndAdmit(ctx context.Context, tx pgx.Tx, c Claim, to Position, entries []Entry) (Claim, []Admission, error) {
	if len(entries) == 0 || to.Next <= c.Next {
		next, err := l.Advance(ctx, tx, c, to)
		return next, nil, err
	}
	f, err := l.foldBetween(c, to, entries)
	if err != nil {
		return c, nil, err
	}
	next, err := l.advanceWith(ctx, tx, c, to, f, keyStatement{l.sql.known[l.findPlan(len(f.order))], l.findArgs(f, f.order), f.readFound})
	if err == nil {
		err = l.copyKeys(ctx, tx, f)
	}
	if err != nil {
		return c, nil, err
	}
	return next, f.admissions(), nil
}

// AdvanceAndAdmitContested is Advance and then Admit, with the advance and the
// insert in one round trip: the way of a batch whose keys another partition may
// bring at the same moment. It waits for that and then knows what became of it.
// Where the advance moves no row, no key is inserted. Entries and answers are
// those of AdvanceAndAdmit, without ErrKeyContested.
func (l *Ledger) AdvanceAndAdmitContested(ctx context.Context, tx pgx.Tx, c Claim, to Position, entries []Entry) (Claim, []Admission, error) {
	if len(entries) == 0 || to.Next <= c.Next {
		next, err := l.Advance(ctx, tx, c, to)
		return next, nil, err
	}
	f, err := l.foldBetween(c, to, entries)
	if err != nil {
		return c, nil, err
	}
	args := append(f.args(l.id()), l.group, l.topic, c.Epoch, to.Next)
	next, err := l.advanceWith(ctx, tx, c, to, f, keyStatement{l.sql.admitAdvanced, args, f.readInserted})
	if err != nil {
		return c, nil, err
	}
	admissions, err := l.resolve(ctx, tx, f)
	if err != nil {
		return c, nil, err
	}
	return next, admissions, nil
}

// foldBetween folds the entries of an advance.
func (l *Ledger) foldBetween(c Claim, to Position, entries []Entry) (*folded, error) {
	f, err := l.fold(entries, c.Partition)
	if err != nil {
		return nil, err
	}
	if first, last := entries[0].Offset, entries[len(entries)-1].Offset; first < c.Next || last >= to.Next {
		return nil, l.admitError(f, fmt.Errorf("the entries' offsets %d to %d are outside of the advance from %d to %d", first, last, c.Next, to.Next))
	}
	return f, nil
}

// keyStatement is what is sent along with an advance, and how its rows are read.
type keyStatement struct {
	sql  string
	args []any
	read func(pgx.Rows) error
}

// advanceWith sends the advance and a statement on the keys in one round trip,
// and reads both answers before it looks at the advance's row count.
func (l *Ledger) advanceWith(ctx context.Context, tx pgx.Tx, c Claim, to Position, f *folded, keys keyStatement) (Claim, error) {
	moved, err := l.sendBoth(ctx, tx, c, to, f, keys)
	if err != nil {
		return c, err
	}
	return l.advanced(ctx, tx, c, to, moved)
}

func (l *Ledger) sendBoth(ctx context.Context, tx pgx.Tx, c Claim, to Position, f *folded, keys keyStatement) (moved int64, err error) {
	var batch pgx.Batch
	batch.Queue(l.sql.advance, l.advanceArgs(c, to)...)
	batch.Queue(keys.sql, keys.args...)
	results := tx.SendBatch(ctx, &batch)
	defer func() {
		if closeErr := results.Close(); err == nil && closeErr != nil {
			err = l.admitError(f, closeErr)
		}
	}()
	tag, err := results.Exec()
	if err != nil {
		return 0, wrap("advance "+l.at(c.Partition, c.Next), err)
	}
	rows, err := results.Query()
	if err == nil {
		err = keys.read(rows)
	}
	if err != nil {
		return 0, l.admitError(f, err)
	}
	return tag.RowsAffected(), nil
}

const sqlAccount = `
update $consumer_offset
set duplicates_producer = duplicates_producer + $5, duplicates_redelivery = duplicates_redelivery + $6, dead_letters = dead_letters + $7
where consumer_group = $1 and topic = $2 and partition = $3 and epoch = $4`

// Account adds a batch's duplicates and dead letters to the account, inside the
// batch's transaction and after its advance. Errors are those of Advance.
func (l *Ledger) Account(ctx context.Context, tx pgx.Tx, c Claim, n Counts) error {
	if n.Producer == 0 && n.Redelivery == 0 && n.DeadLetters == 0 {
		return nil
	}
	operation := "account for the batch before " + l.at(c.Partition, c.Next)
	tag, err := tx.Exec(ctx, l.sql.account, l.group, l.topic, c.Partition, c.Epoch, n.Producer, n.Redelivery, n.DeadLetters)
	if err == nil && tag.RowsAffected() != 1 {
		return l.why(ctx, tx, operation, c)
	}
	return wrap(operation, err)
}
