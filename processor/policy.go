package processor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy says what becomes of a message that cannot be handled.
type Policy struct {
	// OnError is for a message with a fault of its own. Defaults to DeadLetter.
	OnError Action
	// OnKeyReuse is for a message whose key was used before for another
	// payload: DeadLetter, Ignore (it counts as a duplicate) or Halt.
	// Defaults to DeadLetter.
	OnKeyReuse Action
	// ConstraintWait is how long a batch waits for other partitions where a unique
	// or a foreign key refuses one of its messages, which is tried again meanwhile,
	// before OnError says what becomes of it. Later messages of the partition wait,
	// too. Defaults to 0: it does not wait.
	ConstraintWait time.Duration
	// RecordDuplicates keeps a row for each duplicate in the ledger's table
	// duplicate_message. Defaults to false.
	RecordDuplicates bool
	// MaxDeadLetterRate halts a partition when more than this share of its last
	// DeadLetterWindow records became dead letters: a topic is not drained into
	// them because something else is wrong. 1 never halts. Defaults to 0.5.
	MaxDeadLetterRate float64
	// DeadLetterWindow is the number of records that the rate is taken of; no
	// less are judged. Defaults to 1000.
	DeadLetterWindow int
	// MaxDeadLetterValue is the size in bytes up to which a dead letter keeps
	// the record's value; a larger one is kept by its position in the topic.
	// Defaults to 1 MiB.
	MaxDeadLetterValue int
}

// Action is what is done with a message that cannot be handled.
type Action string

// The actions.
const (
	// DeadLetter sets the message aside, in the transaction that passes it.
	DeadLetter Action = "dead_letter"
	// HaltPartition stops the partition at the message.
	HaltPartition Action = "halt"
	// Park sets the message aside, and behind it all later ones of the same
	// record key, in order, until it is replayed or discarded.
	Park Action = "park"
	// Ignore passes the message as if it were a duplicate.
	Ignore Action = "ignore"
)

// withDefaults fills in the defaults and says what is wrong.
func (p Policy) withDefaults(require func(ok bool, path, rule string, got any)) Policy {
	oneOf := func(path string, got Action, allowed ...Action) {
		names := make([]string, len(allowed))
		for i, a := range allowed {
			names[i] = string(a)
		}
		require(slices.Contains(allowed, got), path, "must be one of "+strings.Join(names, ", "), fmt.Sprintf("%q", got))
	}
	fill(&p.OnError, DeadLetter)
	fill(&p.OnKeyReuse, DeadLetter)
	fill(&p.MaxDeadLetterRate, 0.5)
	fill(&p.DeadLetterWindow, 1000)
	fill(&p.MaxDeadLetterValue, 1<<20)
	oneOf("policy.on_error", p.OnError, DeadLetter, HaltPartition, Park)
	oneOf("policy.on_key_reuse", p.OnKeyReuse, DeadLetter, HaltPartition, Ignore)
	require(p.ConstraintWait >= 0, "policy.constraint_wait", "must not be negative", p.ConstraintWait)
	require(p.MaxDeadLetterRate > 0 && p.MaxDeadLetterRate <= 1, "policy.max_dead_letter_rate", "must lie above 0 and not above 1", p.MaxDeadLetterRate)
	require(p.DeadLetterWindow > 0, "policy.dead_letter_window", "must be positive", p.DeadLetterWindow)
	require(p.MaxDeadLetterValue > 0, "policy.max_dead_letter_value", "must be positive", p.MaxDeadLetterValue)
	return p
}

// rate watches which share of a partition's last records became dead letters.
// It belongs to one worker.
type rate struct {
	limit   float64
	window  int64
	batches []passed // the youngest last
	sum     passed
}

// passed is how many records a batch passed, and how many of them died.
type passed struct{ records, dead int64 }

// check says whether the partition must halt instead of passing a batch. Fewer
// records than the window are not judged: one bad record of one is no outage.
func (r *rate) check(next passed) error {
	records, dead := r.sum.records+next.records, r.sum.dead+next.dead
	if next.dead == 0 || records < r.window || float64(dead) <= r.limit*float64(records) {
		return nil
	}
	return &haltError{CodeDeadLetterRate, fmt.Errorf("%d of the last %d records would be dead letters, more than the share %g that policy.max_dead_letter_rate allows; nothing of this batch was passed", dead, records, r.limit)}
}

// add notes a batch that was passed, and forgets those beyond the window.
func (r *rate) add(next passed) {
	r.batches = append(r.batches, next)
	r.sum.records += next.records
	r.sum.dead += next.dead
	for len(r.batches) > 1 && r.sum.records-r.batches[0].records >= r.window {
		r.sum.records -= r.batches[0].records
		r.sum.dead -= r.batches[0].dead
		r.batches = r.batches[1:]
	}
}
