package offsets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Action is what a person does to a partition's position.
type Action string

// The actions.
const (
	// Rewind sets the position back: records are read again. Their keys are
	// known, so their effects are not repeated. A partition that is halted may be
	// set to where it stands, which opens it once its cause is put right.
	Rewind Action = "rewind"
	// Skip sets the position forward: the records between are left out.
	Skip Action = "skip"
	// Adopt takes the position over to another topic: one that was deleted and
	// created again, or that of another cluster. The keys stay: an event whose
	// key was seen in the old topic is a duplicate in the new one, unless the
	// key is the position, which holds the cluster and the topic.
	Adopt Action = "adopt"
)

// Change is what a person wants to be done to one partition.
type Change struct {
	Partition int32
	Action    Action
	// To is the next offset to handle from then on.
	To int64
	// Identity is that of the topic that is there now. Required by Adopt; the
	// others refuse a position of another topic where it is set.
	Identity Identity
	// BeyondFloor lets a rewind go to or below the floor of purged keys, where
	// a record whose key is gone has its effect a second time.
	BeyondFloor bool
}

// Planned is what a change does, by what the ledger holds.
type Planned struct {
	Change
	// Stored is the topic of the stored position, First and Next are the
	// position, Epoch, Owner, State and Reason the claim.
	Stored               Identity
	First, Next, Epoch   int64
	Owner, State, Reason string
	// Floor is up to where keys of the partition were purged, -1 where none was.
	Floor int64
	// Again is how many offsets are read again, LeftOut how many are not read at
	// all. Offsets of two topics are not compared: both are 0 for Adopt.
	Again, LeftOut int64
	// Refusal is why the change makes no sense; nil where it does.
	Refusal error
}

// RefusedChange says why a change makes no sense, and what to say instead.
// Nothing was changed.
type RefusedChange struct {
	Change
	Topic, Why string
}

func (r *RefusedChange) Error() string {
	return fmt.Sprintf("%s %s/%d@%d: %s", r.Action, r.Topic, r.Partition, r.To, r.Why)
}

const sqlStanding = `
select o.partition, o.cluster_id, o.topic_id, o.first_offset, o.next_offset, o.epoch, coalesce(o.owner, ''), o.state, coalesce(o.reason, '')
from $consumer_offset as o
where o.consumer_group = $1 and o.topic = $2 and o.partition = any ($3)
order by o.partition`

// sqlStandingLocked waits for the batch in work, as a claim does, and takes the
// rows in the order in which all take them.
const sqlStandingLocked = sqlStanding + `
for update`

// Plan says for each change, by partition, what it would do now. Nothing is
// locked, so what the processor does meanwhile may make it wrong: Apply looks
// again. Each partition may be named once.
func (l *Ledger) Plan(ctx context.Context, db DB, changes []Change) ([]Planned, error) {
	plan, err := l.plan(ctx, db, l.sql.standing, changes)
	return plan, wrap("plan a change of "+l.topic, err)
}

func (l *Ledger) plan(ctx context.Context, db DB, standing string, changes []Change) ([]Planned, error) {
	plan, err := sorted(changes)
	if err != nil {
		return nil, err
	}
	stored, err := l.standing(ctx, db, standing, plan)
	if err != nil {
		return nil, err
	}
	floors, err := l.Floors(ctx, db)
	if err != nil {
		return nil, err
	}
	for i := range plan {
		p, known := stored[plan[i].Partition]
		p.Change, p.Floor = plan[i].Change, -1
		if j := slices.IndexFunc(floors, func(f Floor) bool { return f.Partition == p.Partition }); j >= 0 {
			p.Floor = floors[j].Offset
		}
		why := "the group has no position in this partition: it is stored when a worker first claims it"
		if known {
			why = p.judge()
		}
		if why != "" {
			p.Refusal = &RefusedChange{p.Change, l.topic, why}
		}
		plan[i] = p
	}
	return plan, nil
}

// sorted orders the changes by partition and finds what is wrong with them
// whatever the ledger holds.
func sorted(changes []Change) ([]Planned, error) {
	if len(changes) == 0 {
		return nil, errors.New("no partition is named")
	}
	plan := make([]Planned, len(changes))
	for i, c := range changes {
		plan[i].Change = c
	}
	slices.SortFunc(plan, func(a, b Planned) int { return cmp.Compare(a.Partition, b.Partition) })
	for i, p := range plan {
		switch {
		case i > 0 && p.Partition == plan[i-1].Partition:
			return nil, fmt.Errorf("partition %d is named twice", p.Partition)
		case p.Action != Rewind && p.Action != Skip && p.Action != Adopt:
			return nil, fmt.Errorf("partition %d: the action must be rewind, skip or adopt (got %q)", p.Partition, p.Action)
		case p.To < 0:
			return nil, fmt.Errorf("partition %d: the offset must not be negative (got %d)", p.Partition, p.To)
		case p.Action == Adopt && p.Identity == Identity{}:
			return nil, fmt.Errorf("partition %d: adopt needs the identity of the topic that is there now", p.Partition)
		}
	}
	return plan, nil
}

// standing reads what the ledger holds of the partitions that are planned for.
func (l *Ledger) standing(ctx context.Context, db DB, sql string, plan []Planned) (map[int32]Planned, error) {
	partitions := make([]int32, len(plan))
	for i, p := range plan {
		partitions[i] = p.Partition
	}
	rows, err := db.Query(ctx, sql, l.group, l.topic, partitions)
	if err != nil {
		return nil, err
	}
	stored := make(map[int32]Planned, len(plan))
	var p Planned
	_, err = pgx.ForEachRow(rows, []any{
		&p.Partition, &p.Stored.ClusterID, (*uuid.UUID)(&p.Stored.TopicID), &p.First, &p.Next, &p.Epoch, &p.Owner, &p.State, &p.Reason,
	}, func() error {
		stored[p.Partition] = p
		return nil
	})
	return stored, err
}

// judge says what the change does to what is stored, and returns why it makes no
// sense, empty where it does.
func (p *Planned) judge() string {
	if p.Action != Adopt {
		p.Again, p.LeftOut = max(0, p.Next-p.To), max(0, p.To-p.Next)
	}
	here := p.Identity == Identity{} || p.Identity == p.Stored
	switch {
	case p.Action == Adopt && here:
		return "the stored position is of this very topic: rewind or skip moves it"
	case p.Action == Adopt:
		return ""
	case !here:
		return fmt.Sprintf("the stored offset %d is of %s, and the topic that is there now is %s: adopt takes the position over", p.Next, p.Stored, p.Identity)
	case p.Action == Rewind && p.To == p.Next && p.State == "halted": // opens it where it stands
	case p.Action == Rewind && p.To >= p.Next:
		return fmt.Sprintf("the stored offset is %d, and a rewind goes back: to leave records out say skip", p.Next)
	case p.Action == Skip && p.To <= p.Next:
		return fmt.Sprintf("the stored offset is %d, and a skip goes forward: to read records again say rewind", p.Next)
	case p.Action == Rewind && p.To <= p.Floor && !p.BeyondFloor:
		return fmt.Sprintf("keys up to offset %d were purged, so that records up to there would have their effects again: rewind to %d, or set Change.BeyondFloor (--beyond-floor)",
			p.Floor, p.Floor+1)
	}
	return ""
}
