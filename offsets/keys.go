package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Floor is up to where keys of a partition were purged: at or below Offset, that
// a key is not there says nothing.
type Floor struct {
	Partition int32
	Offset    int64
	// PurgedAt is when the floor rose last.
	PurgedAt time.Time
}

// A key does not know its topic. Where pipelines of several topics share a
// handler, the floor of a partition is that of all of them, which is never too
// low for one.
const sqlFloors = `
select f.partition, max(f.record_offset), max(f.purged_at)
from $key_floor as f join $handler as h on h.id = f.handler
where h.name = $1
group by f.partition
order by f.partition`

// Floors returns the floor of each partition of which the handler's keys were
// purged, by partition.
func (l *Ledger) Floors(ctx context.Context, db DB) ([]Floor, error) {
	rows, err := db.Query(ctx, l.sql.floors, l.handler)
	if err != nil {
		return nil, wrap("read the floors of handler "+l.handler, err)
	}
	floors, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Floor])
	return floors, wrap("read the floors of handler "+l.handler, err)
}

const sqlFindKey = `
select m.partition, m.record_offset, m.payload_sum, m.processed_at, m.result
from $processed_message as m join $handler as h on h.id = m.handler
where h.name = $1 and m.key = $2`

// Processed is a key that was processed.
type Processed struct {
	// Entry is the one that was admitted: where, and with which payload.
	Entry Entry
	// At is when its transaction began, by the database's clock.
	At time.Time
	// Result is the JSON that its handler stored, nil where it stored none.
	Result []byte
}

// FindKey looks for one key of the handler; found is false where it was never
// processed, and where it was purged.
func (l *Ledger) FindKey(ctx context.Context, db DB, key [16]byte) (p Processed, found bool, err error) {
	p.Entry.Key = key
	err = db.QueryRow(ctx, l.sql.findKey, l.handler, uuid.UUID(key)).
		Scan(&p.Entry.Partition, &p.Entry.Offset, &p.Entry.PayloadSum, &p.At, &p.Result)
	if errors.Is(err, pgx.ErrNoRows) {
		return Processed{}, false, nil
	}
	return p, err == nil, wrap(fmt.Sprintf("find key %s of handler %s", uuid.UUID(key), l.handler), err)
}

// KeyStats is what the idempotency keys of all handlers cost.
type KeyStats struct {
	// TableBytes and IndexBytes are the sizes on disk.
	TableBytes, IndexBytes int64
	// Exact says that the table is small enough to have been counted. Else the
	// figures of the handlers are estimates from a sample of 8 MiB.
	Exact bool
	// Handlers are sorted by name; one that is not in the sample is left out.
	Handlers []HandlerKeys
}

// HandlerKeys is how many keys a handler has, and when the oldest one was
// processed.
type HandlerKeys struct {
	Handler string
	Keys    int64
	Oldest  time.Time
}

// sampleBlocks is how many blocks the statistics read.
const sampleBlocks = 1024

const sqlKeySizes = `
select pg_table_size('$processed_message'::regclass), pg_indexes_size('$processed_message'::regclass),
  pg_relation_size('$processed_message'::regclass) / current_setting('block_size')::bigint`

// The planner's statistics know nothing of a table that was never analyzed, and
// at most the shares of its handlers. A sample of blocks costs as little.
const sqlKeySample = `
select h.name, m.keys, m.oldest
from (
  select handler, count(*) as keys, min(processed_at) as oldest
  from $processed_message tablesample system ($1) group by handler
) as m join $handler as h on h.id = m.handler
order by h.name`

// KeyStats returns what the keys cost. It never reads more than 8 MiB of them.
func (l *Ledger) KeyStats(ctx context.Context, db DB) (KeyStats, error) {
	var s KeyStats
	var blocks int64
	if err := db.QueryRow(ctx, l.sql.keySizes).Scan(&s.TableBytes, &s.IndexBytes, &blocks); err != nil {
		return s, wrap("read the size of the keys", err)
	}
	share := min(1, float64(sampleBlocks)/float64(max(1, blocks)))
	s.Exact = share == 1
	rows, err := db.Query(ctx, l.sql.keySample, 100*share)
	if err == nil {
		s.Handlers, err = pgx.CollectRows(rows, pgx.RowToStructByPos[HandlerKeys])
	}
	for i := range s.Handlers {
		s.Handlers[i].Keys = int64(float64(s.Handlers[i].Keys) / share)
	}
	return s, wrap("sample the keys", err)
}
