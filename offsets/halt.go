package offsets

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// sqlHaltRefused leaves alone what another cluster's worker holds: there the
// partition is well, and it is this process that was pointed elsewhere.
const sqlHaltRefused = `
update $consumer_offset set state = 'halted', reason = $5, updated_at = now()
where consumer_group = $1 and topic = $2 and partition = $3 and epoch = $4 and (owner is null or cluster_id = $6)`

// HaltRefused notes why a partition was not claimed, for a person to decide, and
// reports whether it did: a position that was changed since, or that somebody
// holds on another cluster, is left as it is.
func (l *Ledger) HaltRefused(ctx context.Context, db DB, r Refusal, reason string) (noted bool, err error) {
	tag, err := db.Exec(ctx, l.sql.haltRefused, l.group, l.topic, r.Partition, r.Epoch, reason, r.Seen.ClusterID)
	return tag.RowsAffected() == 1, wrap("halt "+l.at(r.Partition, r.Next), err)
}

// Halted is a partition that was halted, as the process remembers it.
type Halted struct {
	Partition int32
	// Epoch is that of the claim, or of the refusal.
	Epoch int64
	// Noted means that the ledger says so, too.
	Noted bool
}

const sqlDecided = `
select h.partition
from unnest($3::int[], $4::bigint[], $5::boolean[]) as h (partition, epoch, noted)
left join $consumer_offset as o on o.consumer_group = $1 and o.topic = $2 and o.partition = h.partition
where o.partition is null or o.epoch <> h.epoch or h.noted and o.state = 'open'
order by h.partition`

// Decided returns which of the partitions are not as they were when they were
// halted: a person has moved or opened them, another worker has claimed them, or
// the database went back. Claim them again to see.
func (l *Ledger) Decided(ctx context.Context, db DB, halted []Halted) ([]int32, error) {
	partitions, epochs, noted := make([]int32, len(halted)), make([]int64, len(halted)), make([]bool, len(halted))
	for i, h := range halted {
		partitions[i], epochs[i], noted[i] = h.Partition, h.Epoch, h.Noted
	}
	rows, err := db.Query(ctx, l.sql.decided, l.group, l.topic, partitions, epochs, noted)
	if err != nil {
		return nil, wrap("look at what is halted of "+l.topic, err)
	}
	decided, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	return decided, wrap("look at what is halted of "+l.topic, err)
}
