package offsets

import (
	"context"
	"fmt"
)

// A release must never wait: the rows are taken in no particular order, and a
// row that is locked is another owner's already, or is about to be. Nothing is
// lost, since the owner is for people only.
const sqlRelease = `
update $consumer_offset as o set owner = null, updated_at = now()
from (
  select r.partition
  from $consumer_offset as r
  join unnest($3::int[], $4::bigint[]) as c (partition, epoch) on r.partition = c.partition and r.epoch = c.epoch
  where r.consumer_group = $1 and r.topic = $2
  for update of r skip locked
) as ours
where o.consumer_group = $1 and o.topic = $2 and o.partition = ours.partition`

// Release notes that the claims were let go. It is for people who look at the
// table: safety never asks for the owner. A claim that is no longer ours, and a
// row that is locked, is passed over.
func (l *Ledger) Release(ctx context.Context, db DB, claims []Claim) error {
	partitions, epochs := make([]int32, len(claims)), make([]int64, len(claims))
	for i, c := range claims {
		partitions[i], epochs[i] = c.Partition, c.Epoch
	}
	_, err := db.Exec(ctx, l.sql.release, l.group, l.topic, partitions, epochs)
	return wrap(fmt.Sprintf("release %s/%v", l.topic, partitions), err)
}

const sqlHalt = `
update $consumer_offset set state = 'halted', reason = $5, updated_at = now()
where consumer_group = $1 and topic = $2 and partition = $3 and epoch = $4`

// Halt notes why a partition was stopped, for a person to decide. The next
// claim opens it again, and whoever holds that halts again if the cause is
// still there. A claim that is no longer ours notes nothing.
func (l *Ledger) Halt(ctx context.Context, db DB, c Claim, reason string) error {
	_, err := db.Exec(ctx, l.sql.halt, l.group, l.topic, c.Partition, c.Epoch, reason)
	return wrap("halt "+l.at(c.Partition, c.Next), err)
}
