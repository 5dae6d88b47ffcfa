package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Keys are purged by a walk over the table's blocks (a TID range scan, PostgreSQL
// 14), a few thousand rows a transaction, from where the walk has stopped. There
// is no index on processed_at, so an insert pays nothing. A b-tree would cost it
// a quarter more WAL. A BRIN index costs it nothing, but its ranges never shrink:
// once purged space is used again, each range spans from the oldest key ever to
// the newest, and asking for the old ones reads the whole table.

// Purge says which keys to purge, and how much of it in one transaction.
type Purge struct {
	// Retain is how long a key is kept, by the database's clock. Required.
	Retain time.Duration
	// Limit is how many keys one transaction purges at most.
	// Defaults to 5000.
	Limit int
	// Idle leaves the purge alone if another process has been at it within this
	// time, by the database's clock. Defaults to 0: only one that is at it right
	// now is left alone.
	Idle time.Duration
}

// Purged is what one transaction of a purge has done.
type Purged struct {
	// Keys is how many were purged.
	Keys int64
	// Blocks is how many blocks of the table were passed, and Table how many
	// there are: when the Blocks of successive calls add up to Table, the walk
	// has been everywhere.
	Blocks, Table int64
	// More says that the limit was met: there are more where the walk stands.
	More bool
	// Busy says that nothing was done, since another process is at it.
	Busy bool
}

const (
	// purgeWindow is how many blocks one transaction looks through at most, 8
	// MiB: where nothing is old the limit never ends it.
	purgeWindow = 1024
	purgeLimit  = 5000
)

// The turn locks the handler's row, and passes over it where it is locked: one
// purger at a time, and none waits. A last step in the future, as after a
// failover to a server whose clock is behind, holds nobody off.
//
// The lock timeout is for a row that somebody else has locked by hand. To wait
// for it could make others wait, who insert one of the keys deleted so far.
const sqlPurgeTurn = `
select purge_block, pg_relation_size('$processed_message'::regclass) / current_setting('block_size')::bigint,
  set_config('lock_timeout', '100ms', true)
from $handler
where id = $1 and (purged_at between now() - $2::interval and now()) is not true
for update skip locked`

// A key that is being inserted cannot be seen here, and so is never purged. The
// floor rises in the transaction that deletes.
const sqlPurge = `
with expired as materialized (
  select ctid as place from $processed_message
  where ctid >= $1 and ctid < $2 and handler = $3 and processed_at < now() - $4::interval
  limit $5
), gone as (
  delete from $processed_message where ctid = any (array(select place from expired))
  returning partition, record_offset
), raised as (
  insert into $key_floor as f (handler, topic, partition, record_offset)
  select $3, $6, partition, max(record_offset) from gone group by partition order by partition
  on conflict (handler, topic, partition) do update
  set record_offset = greatest(f.record_offset, excluded.record_offset), purged_at = now()
)
select (select count(*) from expired), (select max(place) from expired), (select count(*) from gone)`

const sqlPurgeNext = `update $handler set purge_block = $2, purged_at = now() where id = $1`

// Purge deletes keys of the handler that were processed longer ago than p.Retain,
// in a short transaction of its own, and raises the floors by them. It goes on
// where the last call, of whatever process, has stopped, so it must be called
// again and again; where it meets the table's end it begins anew.
//
// It makes nobody wait who inserts other keys, and takes no lock for longer than
// the one transaction. Redelivered records are safe without their keys, since it
// is the offset that passes them by.
func (l *Ledger) Purge(ctx context.Context, db DB, p Purge) (Purged, error) {
	if l.id() == 0 {
		return Purged{}, wrap("purge keys of handler "+l.handler, errors.New("the handler has no id yet; call Register first"))
	}
	if p.Retain <= 0 || p.Limit < 0 || p.Idle < 0 {
		return Purged{}, wrap("purge keys of handler "+l.handler, fmt.Errorf("retain must be positive, limit and idle not negative (got %+v)", p))
	}
	if p.Limit == 0 {
		p.Limit = purgeLimit
	}
	var purged Purged
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) (err error) {
		purged, err = l.purge(ctx, tx, p)
		return err
	})
	if err != nil {
		return Purged{}, wrap("purge keys of handler "+l.handler, err)
	}
	return purged, nil
}

func (l *Ledger) purge(ctx context.Context, tx pgx.Tx, p Purge) (purged Purged, err error) {
	var from int64
	var timeout string
	err = tx.QueryRow(ctx, l.sql.purgeTurn, l.id(), p.Idle).Scan(&from, &purged.Table, &timeout)
	if errors.Is(err, pgx.ErrNoRows) {
		return Purged{Busy: true}, nil
	}
	if err != nil {
		return purged, err
	}
	if from >= purged.Table {
		from = 0 // the table was made smaller
	}
	to := min(from+purgeWindow, purged.Table)
	var found int64
	var last pgtype.TID
	row := tx.QueryRow(ctx, l.sql.purge, block(from), block(to), l.id(), p.Retain, p.Limit, l.topic)
	if err := row.Scan(&found, &last, &purged.Keys); err != nil {
		return purged, err
	}
	if purged.More = found == int64(p.Limit); purged.More {
		to = int64(last.BlockNumber)
	}
	purged.Blocks = to - from
	if to == purged.Table {
		to = 0
	}
	_, err = tx.Exec(ctx, l.sql.purgeNext, l.id(), to)
	return purged, err
}

// block is the place before the first row of a block.
func block(n int64) pgtype.TID {
	return pgtype.TID{BlockNumber: uint32(n), Valid: true} //nolint:gosec // a table has at most 2^32 - 1 blocks
}
