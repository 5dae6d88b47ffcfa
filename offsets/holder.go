package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// The row as we see it carries in xmax the transaction that is changing it, and
// a transaction that runs holds a lock on its own id: together they name the
// backend. Only backends of our own role are named, since only those may we end.
const sqlHolder = `
select a.pid, a.backend_start, coalesce(a.application_name, ''), coalesce(a.state, ''), coalesce(extract(epoch from now() - a.state_change), 0)::float8
from $consumer_offset o
join pg_locks l on l.locktype = 'transactionid' and l.granted and l.transactionid = o.xmax
join pg_stat_activity a on a.pid = l.pid and a.usename = current_user
where o.consumer_group = $1 and o.topic = $2 and o.partition = $3 and a.pid <> pg_backend_pid()`

// The start of the backend is compared so that a pid which was given to another
// backend in between is not the one that ends.
const sqlTerminate = `
select pg_terminate_backend(pid) from pg_stat_activity
where pid = $1 and backend_start = $2 and usename = current_user`

// Holder is the backend whose open transaction holds the row of a partition.
type Holder struct {
	PID         int32
	Started     time.Time
	Application string
	// State is pg_stat_activity's, Since how long it has lasted.
	State string
	Since time.Duration
}

// Holder returns who holds the row of a partition, and false where nobody of
// our own role does.
func (l *Ledger) Holder(ctx context.Context, db DB, partition int32) (Holder, bool, error) {
	var h Holder
	var seconds float64
	err := db.QueryRow(ctx, l.sql.holder, l.group, l.topic, partition).
		Scan(&h.PID, &h.Started, &h.Application, &h.State, &seconds)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, false, nil
	}
	h.Since = time.Duration(seconds * float64(time.Second))
	return h, err == nil, wrap(fmt.Sprintf("look for the holder of %s/%d", l.topic, partition), err)
}

// Terminate ends the holder's backend, which rolls its transaction back. It is
// the last resort of a claim whose predecessor's transaction outlasts every
// timeout, and reports whether there was still something to end.
func (l *Ledger) Terminate(ctx context.Context, db DB, h Holder) (bool, error) {
	var ended bool
	err := db.QueryRow(ctx, sqlTerminate, h.PID, h.Started).Scan(&ended)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return ended, wrap(fmt.Sprintf("terminate backend %d", h.PID), err)
}
