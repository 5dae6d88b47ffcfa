package offsets

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// errReadOnly is why a look at a standby says nothing: it may be behind, and it
// may be the next one to take writes.
var errReadOnly = errors.New("the server is read-only, so what it has not yet is not lost")

// Check compares claims with the rows, all at once and without a lock, and
// returns what has become of those that do not hold any more, by partition:
// ErrFenced or ErrWentBack. It is for a worker that has nothing to advance, which
// would else never learn that a person has rewound its partition, or that the
// database went back. The claims must have been true before the call; that they
// have been advanced meanwhile is no difference.
//
// It decides nothing. Should a claim be renewed while it is looked at, it may be
// called fenced, which costs another claim.
func (l *Ledger) Check(ctx context.Context, db DB, claims []Claim) (map[int32]error, error) {
	operation := "check the claims of " + l.topic
	rows, err := l.rowsOf(ctx, db, claims)
	if err != nil {
		return nil, wrap(operation, err)
	}
	ended := map[int32]error{}
	back := false
	for _, c := range claims {
		if err := heldAgainst(rows, c); err != nil {
			ended[c.Partition] = wrap("look at "+l.at(c.Partition, c.Next), err)
			back = back || errors.Is(err, ErrWentBack)
		}
	}
	if back {
		if err := writable(ctx, db); err != nil {
			return nil, wrap(operation, err)
		}
	}
	return ended, nil
}

// rowsOf returns the rows of the claims' partitions, each as a claim.
func (l *Ledger) rowsOf(ctx context.Context, db DB, claims []Claim) (map[int32]Claim, error) {
	partitions := make([]int32, len(claims))
	for i, c := range claims {
		partitions[i] = c.Partition
	}
	rows, err := db.Query(ctx, l.sql.standing, l.group, l.topic, partitions)
	if err != nil {
		return nil, err
	}
	found := map[int32]Claim{}
	var c Claim
	_, err = pgx.ForEachRow(rows, []any{&c.Partition, nil, nil, nil, &c.Next, &c.Epoch, nil, nil, nil}, func() error {
		found[c.Partition] = c
		return nil
	})
	return found, err
}

// heldAgainst says why a claim does not hold against the rows, nil where it does.
func heldAgainst(rows map[int32]Claim, c Claim) error {
	row, known := rows[c.Partition]
	switch {
	case !known:
		return unknown(c)
	case row.Epoch > c.Epoch:
		return fenced(row.Epoch, row.Next, c)
	case row.Epoch < c.Epoch || row.Next < c.Next:
		return wentBack(row.Epoch, row.Next, c)
	}
	return nil
}

// writable returns an error if the server takes no writes.
func writable(ctx context.Context, db DB) error {
	var readOnly string
	if err := db.QueryRow(ctx, "select current_setting('transaction_read_only')").Scan(&readOnly); err != nil {
		return err
	}
	if readOnly == "on" {
		return errReadOnly
	}
	return nil
}

func unknown(c Claim) error {
	return fmt.Errorf("%w: it does not know the partition, ours is epoch %d; %s", ErrWentBack, c.Epoch, startAnew)
}

func fenced(epoch, next int64, c Claim) error {
	return fmt.Errorf("%w: the partition is at epoch %d, offset %d, ours is epoch %d; %s", ErrFenced, epoch, next, c.Epoch, letGo)
}
