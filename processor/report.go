package processor

import (
	"fmt"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables"
)

// Range is a part of a topic. The zero Range is all that the group has read:
// from where it began to its stored position.
type Range struct {
	// From and To bound the offsets [From, To) of each partition named; a
	// partition that is not named has the bound of the zero Range.
	From, To map[int32]int64
	// BeyondFloor allows a range that begins where keys were purged: their
	// records show as new, although they had their effect.
	BeyondFloor bool
	// ToEnd goes on to the end of the log instead of to the stored position: what
	// the group has not read yet shows as new. A partition that it has not begun,
	// or whose beginning the log has forgotten, is then read from what the log
	// holds. Defaults to false.
	ToEnd bool
	// Progress, if set, is told now and then how many of the range's offsets
	// are done.
	Progress func(done, total int64)
}

// Report is what came of a replay.
type Report struct {
	// Records is how many were read, Duplicates how many of them had their
	// effect already, Fresh how many had not: a replay expects none.
	Records    int64 `json:"records"`
	Duplicates int64 `json:"duplicates"`
	Fresh      int64 `json:"fresh"`
	// DeadLetters is how many were set aside when they were read first.
	DeadLetters int64 `json:"dead_letters"`
	// LeftOut is how many had no effect because a person has skipped them.
	LeftOut int64 `json:"left_out"`
	// Faults is how many others could not be decoded or keyed, or reuse a key
	// for another payload.
	Faults int64 `json:"faults"`
	// Partitions is what was read of each partition.
	Partitions []RangeReport `json:"partitions"`
	// Examples are the first few of the records that were new or at fault.
	Examples []Example `json:"examples"`
	// Changes are what the effects of the new records have written before they
	// were rolled back, by table: also what triggers did. A batch sees the live
	// tables, not the effects of the batches before it.
	Changes []tables.Activity `json:"changes"`
	// Compacted says that the topic forgets records that have later ones of the
	// same record key: that nothing is new then proves nothing of those forgotten.
	Compacted bool `json:"compacted"`
}

// RangeReport is what was read of one partition: the offsets [From, To).
type RangeReport struct {
	Partition int32 `json:"partition"`
	From      int64 `json:"from"`
	To        int64 `json:"to"`
	Records   int64 `json:"records"`
	// Fresh is how many had no effect yet.
	Fresh int64 `json:"fresh"`
}

// Example is a record that a replay did not expect.
type Example struct {
	Position string `json:"position"`
	// Key is the idempotency key of a record that is new.
	Key string `json:"key"`
	// Reason is "new", or the code of the fault.
	Reason schema.Reason `json:"reason"`
	Detail string        `json:"detail"`
}

// ReasonNew is the Reason of an example whose key had no effect yet.
const ReasonNew schema.Reason = "new"

// Clean reports whether the replay found nothing new.
func (r Report) Clean() bool { return r.Fresh == 0 && r.Faults == 0 }

// String is the verdict in one line.
func (r Report) String() string {
	verdict := "nothing new"
	if !r.Clean() {
		verdict = "NOT CLEAN"
	}
	leftOut := ""
	if r.LeftOut > 0 {
		leftOut = fmt.Sprintf("%d left out by a skip, ", r.LeftOut)
	}
	return fmt.Sprintf("replayed %d records of %d partitions: %d duplicates, %d dead letters, %s%d new, %d at fault: %s",
		r.Records, len(r.Partitions), r.Duplicates, r.DeadLetters, leftOut, r.Fresh, r.Faults, verdict)
}
