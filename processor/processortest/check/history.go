package check

import "time"

// History is all that is known of a run.
type History struct {
	Run         Run
	Records     []Record
	Passes      []Pass
	Changes     []Change
	Appended    []Append
	Balances    []Balance
	Counters    []Counter
	DeadLetters []DeadLetter
	Positions   []Position
	Faults      []Fault
	Commits     []Commit
	Halts       []Halt
	Samples     []Sample
	Exits       []Exit
}

// Run is the run as a whole.
type Run struct {
	Seed    uint64
	Options string
	Began   time.Time
	// Healed is when the last fault was over and nothing was produced any more,
	// Drained when everything was handled, zero where that never came.
	Healed, Drained time.Time
	// Limit is how long it may take from Healed to Drained.
	Limit time.Duration
}

// Record is a record of the log, as a reader of committed records sees it.
type Record struct {
	Partition        int32
	Offset           int64
	ID, Entity       string
	Seq              int64
	From, To         string
	Amount, Currency string
	// Poison is the reason that its dead letter must have; empty for a good one.
	Poison string
	// Topic counts the topics of this name, from 0 on: another one each time it was
	// deleted and created again. Log counts the partition's logs: another one each
	// time its offsets were given again, by a topic created again or by a leader
	// whose log was shorter.
	Topic, Log int `json:",omitzero"`
}

// Pass is a committed transaction: the offsets [From, To) of a partition.
type Pass struct {
	Partition       int32
	From, To, Epoch int64
	Owner           string
	// Tx is the transaction's number at the database, empty where the history does
	// not tell.
	Tx string
}

// Change is a change of a position by a person, or a database that was put back.
type Change struct {
	Partition       int32
	From, To, Epoch int64
	Action          string
}

// Append is a row that a record has left. At rises in the order of the inserts
// of one partition. Tx is the number of the transaction that wrote it, empty where
// the history does not tell.
type Append struct {
	ID, Entity string
	Seq        int64
	Partition  int32
	Offset, At int64
	Tx         string
}

// Balance is what an account holds.
type Balance struct{ Account, Currency, Amount string }

// Counter is what an entity has come to.
type Counter struct {
	Entity string
	N      int64
	Total  string
}

// DeadLetter is a record that was set aside. Topic is as in Record.
type DeadLetter struct {
	Partition int32
	Offset    int64
	Reason    string
	Topic     int `json:",omitzero"`
}

// Position is how far a partition came, and its account.
type Position struct {
	Partition                                  int32
	First, Next, Epoch                         int64
	Records, Producer, Redelivery, DeadLetters int64
	Skipped, Rewound                           int64
	State, Reason                              string
}

// Fault is something that was done to the run.
type Fault struct {
	// Row is its number in the list of faults, Kind its name.
	Row    int
	Kind   string
	Detail string
	At     time.Time
	// For is how long it lasted, Struck whether it hit anything.
	For    time.Duration
	Struck bool
}

// Commit is a COMMIT that a worker has had no answer to.
type Commit struct {
	Worker string
	// Life counts the starts of the worker's process.
	Life int
	At   time.Time
	// Outcome is "committed", "aborted" or "fenced"; empty where the worker has
	// not found out, and ended, or was ended, first.
	Outcome string
	// Ended says that the worker's process has ended before it found out.
	Ended bool
}

// Halt is a halt that was due: by Code, from the offset At on, until Until.
type Halt struct {
	Partition int32
	Code      string
	// At is the offset at which it must stand, and Stood where it stood when
	// somebody looked, with Seen as its code.
	At, Stood int64
	Seen      string
}

// Sample is what a reader has seen in the middle of the run, in one snapshot.
type Sample struct {
	At time.Time
	// Sum is what the balances add up to, Doubles how many identities had two
	// effects, Early how many dead letters were there before the stored offset had
	// passed them, Lag how many offsets were not handled.
	Sum     string
	Doubles int64
	Early   int64
	Lag     int64
	// Handled is how many records had been passed.
	Handled int64
}

// Exit is the end of a worker's process.
type Exit struct {
	Worker string
	Life   int
	At     time.Time
	// Code is its exit code, -1 where a signal has ended it.
	Code int
	// Awaited says that somebody has ended it.
	Awaited bool
}
