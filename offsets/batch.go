package offsets

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// AdvanceAndAdmit is Advance and then Admit in one round trip. The advance is
// the first statement that the server sees; where it moves no row, no key is
// inserted. The entries must lie between the claim's Next and to.Next: a batch
// that begins before its claim would do again what has been passed.
func (l *Ledger) AdvanceAndAdmit(ctx context.Context, tx pgx.Tx, c Claim, to Position, entries []Entry) (Claim, []Admission, error) {
	if len(entries) == 0 || to.Next <= c.Next {
		next, err := l.Advance(ctx, tx, c, to)
		return next, nil, err
	}
	f, err := l.fold(entries, c.Partition)
	if err != nil {
		return c, nil, err
	}
	if first, last := entries[0].Offset, entries[len(entries)-1].Offset; first < c.Next || last >= to.Next {
		return c, nil, l.admitError(f, fmt.Errorf("the entries' offsets %d to %d are outside of the advance from %d to %d", first, last, c.Next, to.Next))
	}
	moved, err := l.sendBoth(ctx, tx, c, to, f)
	if err != nil {
		return c, nil, err
	}
	next, err := l.advanced(ctx, tx, c, to, moved)
	if err != nil {
		return c, nil, err
	}
	admissions, err := l.resolve(ctx, tx, f)
	if err != nil {
		return c, nil, err
	}
	return next, admissions, nil
}

// sendBoth sends the advance and the keys and reads both answers.
func (l *Ledger) sendBoth(ctx context.Context, tx pgx.Tx, c Claim, to Position, f *folded) (moved int64, err error) {
	var batch pgx.Batch
	batch.Queue(l.sql.advance, l.advanceArgs(c, to)...)
	batch.Queue(l.sql.admitAdvanced, append(f.args(l.id()), l.group, l.topic, c.Epoch, to.Next)...)
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
		err = f.readInserted(rows)
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
