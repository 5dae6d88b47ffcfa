package processor

import (
	"time"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// Hooks are called at the steps of the protocol. They are how metrics, logs and
// tests see the engine: a test waits for a hook instead of sleeping, and cuts a
// process at one. They are called from the goroutines of the engine, so they
// must be quick and safe for concurrent use. A nil hook is skipped.
type Hooks struct {
	// Step is called within each batch transaction, before the step is taken;
	// a test that ends the process there cuts the protocol at that point.
	Step func(Step, BatchInfo)
	// Committed is called after a batch is known to be committed.
	Committed func(BatchInfo)
	// RolledBack is called after a batch is known to have left nothing, with
	// the reason.
	RolledBack func(BatchInfo, error)
	// Claimed and Released tell that this process has won, or has let go of,
	// the claim of a partition.
	Claimed, Released func(topic string, c offsets.Claim)
	// Fenced tells that another process has claimed the partition while this
	// one still worked on it.
	Fenced func(topic string, c offsets.Claim)
	// CommitUnknown tells that COMMIT had no answer, and Resolved what claiming
	// again has shown: whether the batch was committed.
	CommitUnknown func(BatchInfo, error)
	Resolved      func(b BatchInfo, committed bool)
	// Halted tells that a partition was stopped on purpose, and Reopened that it
	// is about to be claimed again because a person has changed it: it may be
	// claimed then, or halted anew.
	Halted, Reopened func(Halt)
	// WentBack tells that the database knows less than this process: it was
	// restored, or failed over to a standby that missed the last commits. before
	// is the claim that it has lost, now the one to go on with; what lies between
	// is redone. Fenced is called before it.
	WentBack func(topic string, before, now offsets.Claim)
	// Paused and Resumed tell that a partition's queue is full, and that it has
	// room again.
	Paused, Resumed func(topic string, partition int32)
	// Dropped counts records that came again and lie before the claim.
	Dropped func(topic string, partition int32, records int)
	// Polled counts the records of each poll.
	Polled func(records int)
	// Purged counts the keys that a transaction of the purge has deleted.
	Purged func(keys int64)
	// Retrying tells of a failure that will be tried again after the pause.
	Retrying func(what string, err error, pause time.Duration)
}

// Step is a step of the batch transaction; see the package comment.
type Step string

// The steps, in their order.
const (
	StepBegin   Step = "begin"   // before the transaction begins
	StepAdmit   Step = "admit"   // before the advance and the keys are sent
	StepApply   Step = "apply"   // after the advance and the keys, before the sink
	StepCommit  Step = "commit"  // after the sink, before COMMIT is sent
	StepPublish Step = "publish" // after COMMIT, before the offset is told to Kafka
)

// BatchInfo describes a batch: the records [From, To) of a partition under a
// claim.
type BatchInfo struct {
	Topic     string
	Partition int32
	Epoch     int64
	From, To  int64
	// Records is how many records were read, Fresh how many of them had a new
	// key, and the Duplicates how many had not, by cause.
	Records, Fresh                            int
	DuplicatesProducer, DuplicatesRedelivered int
	// DeadLetters is how many records were set aside, Reasons how many for which
	// reason; it is nil where none were.
	DeadLetters int
	Reasons     map[schema.Reason]int
	// Contested says that this is the second try, since another partition brought
	// one of the keys at the same moment, or since rows of the sink were there.
	// Inserted says that the keys are written by the way that waits for such a
	// partition: in a second try, and from the start where the partition's batches
	// were often contested.
	Contested, Inserted bool
	// Elapsed is the time from the begin of the transaction to now.
	Elapsed time.Duration
}
