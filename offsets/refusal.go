package offsets

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Identity is what tells a topic from another one of the same name.
type Identity struct {
	ClusterID string
	TopicID   [16]byte
}

// String names both, for people.
func (i Identity) String() string {
	return fmt.Sprintf("topic id %s of cluster %q", uuid.UUID(i.TopicID), i.ClusterID)
}

// Refusal is a partition that was not claimed because the ledger's position
// belongs to another topic: one that was deleted and created again under the
// same name, or one of another cluster.
type Refusal struct {
	Topic        string
	Partition    int32
	Stored, Seen Identity
	// Next and Epoch are the stored ones.
	Next, Epoch int64
}

// Code is "topic_recreated" or "other_cluster".
func (r Refusal) Code() string {
	if r.Stored.ClusterID != r.Seen.ClusterID {
		return "other_cluster"
	}
	return "topic_recreated"
}

// Error says what differs, which records are in doubt, and the one command.
func (r Refusal) Error() string {
	what := fmt.Sprintf("the topic was deleted and created again: the stored offset belongs to topic id %s, this one is %s",
		uuid.UUID(r.Stored.TopicID), uuid.UUID(r.Seen.TopicID))
	if r.Code() == "other_cluster" {
		what = fmt.Sprintf("the stored offset belongs to cluster %q, this one is %q", r.Stored.ClusterID, r.Seen.ClusterID)
	}
	doubt := "of this one nothing was read"
	if r.Next > 0 {
		doubt += fmt.Sprintf(", and to go on at %d would leave out its offsets [0, %d)", r.Next, r.Next)
	}
	return fmt.Sprintf("%s/%d@%d, epoch %d: %s; of the former topic, what lay at offset %d and behind was not read; %s; nothing was changed; to read it from its beginning: %s",
		r.Topic, r.Partition, r.Next, r.Epoch, what, r.Next, doubt, r.Remedy())
}

// Remedy is the command that resolves it, for the pipeline file FILE. It reads
// what is there now from the beginning, which can leave out nothing.
func (r Refusal) Remedy() string {
	return fmt.Sprintf(`oncestream offsets adopt FILE --partition %d --to-offset earliest --reason "…"`, r.Partition)
}

const sqlIdentity = `
select partition, cluster_id, topic_id, next_offset, epoch
from $consumer_offset
where consumer_group = $1 and topic = $2 and partition = any ($3)
order by partition`

// refusals says why the partitions without a claim were not claimed. The rows
// are read after the claim, so that they may have changed since: a row that
// would be granted now is an error, never a refusal that names no difference.
func (l *Ledger) refusals(ctx context.Context, db DB, seen Identity, partitions []int32, claims []Claim) ([]Refusal, error) {
	refused := without(partitions, claims)
	rows, err := db.Query(ctx, l.sql.identity, l.group, l.topic, refused)
	if err != nil {
		return nil, err
	}
	refusals, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Refusal, error) {
		r := Refusal{Topic: l.topic, Seen: seen}
		err := row.Scan(&r.Partition, &r.Stored.ClusterID, (*uuid.UUID)(&r.Stored.TopicID), &r.Next, &r.Epoch)
		if err == nil && r.Stored == seen {
			err = fmt.Errorf("partition %d was changed meanwhile; claim again", r.Partition)
		}
		return r, err
	})
	if err == nil && len(refusals) != len(refused) {
		err = fmt.Errorf("%d of the rows of partitions %v were deleted meanwhile; claim again", len(refused)-len(refusals), refused)
	}
	return refusals, err
}

// without returns the partitions that have no claim.
func without(partitions []int32, claims []Claim) []int32 {
	claimed := make(map[int32]bool, len(claims))
	for _, c := range claims {
		claimed[c.Partition] = true
	}
	var rest []int32
	for _, p := range partitions {
		if !claimed[p] {
			rest = append(rest, p)
		}
	}
	return rest
}
