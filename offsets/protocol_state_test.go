package offsets_test

// The protocol as a small state model: two members of a group, one partition of
// three records of which the third repeats the key of the first, and a database
// that can lose an answer, keep a dead session's transaction, be rewound by an
// operator and be restored. All that can happen is tried, in every order, by
// [explore]. What it stands for:
//
//	in the model   in the code
//	claim          Ledger.Claim: one statement, waits for the row
//	begin          Ledger.AdvanceAndAdmit and the sink: the row's lock, the keys, the effects
//	fenced, back   Ledger.why: ErrFenced and ErrWentBack; the worker claims again
//	commit         processor: commitOutcome, and worker.pass, which moves the claim
//	               only when COMMIT has answered
//	reclaim        Ledger.Reclaim, in worker.resolve
//	watch          processor: one look at all rows now and then, for a worker that has
//	               nothing to pass would never find out that it was rewound
//	server         PostgreSQL: ends the transaction of a dead session, and finishes
//	               a COMMIT that nobody waits for any more
//	crash          kill -9 of a member, whatever it does
//	rewind         Ledger's changes by an operator: epoch + 1
//	backup,        a backup, or a standby, and going back to it: keys, effects and
//	restore        offset together
//
// A member that is stopped for a while (SIGSTOP) needs no step of its own: it is
// one that takes no step while the others do. Nor does a group that gives a
// partition to two members: a member may claim at any time.

// The records' keys, by offset.
var protocolKeys = [...]uint8{0, 1, 0}

const protocolEnd = int8(len(protocolKeys))

// protocolState is one state. It is comparable, so it can be a map's key.
type protocolState struct {
	row     protocolRow
	backup  protocolRow
	saved   bool // backup is one
	members [2]protocolMember
	kafka   int8 // Kafka's own offset, which only a sabotage reads
	left    protocolBudget
}

// protocolRow is what is committed in the database.
type protocolRow struct {
	epoch, next int8
	keys        uint8   // a bit for each key
	effects     [2]int8 // of each key
}

type memberPhase int8

const (
	idle    memberPhase = iota // holds no claim
	reading                    // sabotage "stale claim" only: has read the position
	holding                    // holds a claim, as far as it knows
	unknown                    // has sent COMMIT and had no answer
)

type protocolMember struct {
	phase       memberPhase
	epoch, next int8 // of the claim
	tx          protocolTx
}

type txPhase int8

const (
	none     txPhase = iota
	open             // its member works in it
	orphan           // its member is gone, and the server does not know yet
	inFlight         // COMMIT has arrived, and nobody waits for the answer
)

// protocolTx is a member's transaction on the server.
type protocolTx struct {
	phase    txPhase
	advanced bool // holds the row's lock
	from, to int8
	keys     uint8
	effects  [2]int8
}

// protocolBudget is how many faults of each sort may still happen, and how many
// claims. It keeps the model finite.
type protocolBudget struct{ crashes, losses, restores, rewinds, claims, givenUp int8 }

// sabotage breaks the protocol, as faults.md's of the same letter would.
type sabotage struct {
	kafkaFirst         bool // a: Kafka's offset is committed first, and resumed from
	noOffset           bool // b: the advance without the compare of the offset
	noRowCount         bool // c: the advance's row count not looked at
	errorIsAbort       bool // d: no answer to COMMIT is taken for an abort
	errorIsCommit      bool // d: no answer to COMMIT is taken for a commit
	admitIgnored       bool // e: all messages are taken for fresh
	givenUpEarly       bool // f: the claim given up before what is in hand was passed
	keysApart          bool // j: the keys in a transaction of their own
	staleClaim         bool // a claim that reads the position before it takes the lock
	movedBeforeAnswer  bool // the claim moves when COMMIT is sent
	offsetOutsideOfTx  bool // the offset in a transaction of its own, before the effects
	unwatched          bool // a member at the end of the log looks at nothing
	effectsOutsideOfTx bool // the effects in a transaction of their own, before the offset
}

// locked reports whether a transaction holds the partition's row.
func (s *protocolState) locked() bool {
	for i := range s.members {
		if t := &s.members[i].tx; t.phase != none && t.advanced {
			return true
		}
	}
	return false
}

// waits reports whether an insert of the keys waits for another transaction's.
func (s *protocolState) waits(m int, keys uint8) bool {
	t := &s.members[1-m].tx
	return t.phase != none && t.keys&keys != 0
}

// commit makes a member's transaction durable. The answer is what it violates.
func (s *protocolState) commit(m int) (violation string) {
	t := &s.members[m].tx
	if t.from != s.row.next && t.from != t.to {
		violation = "I4: a transaction has passed records that do not follow what was passed before"
	}
	if t.advanced {
		s.row.next = t.to
	}
	s.row.keys |= t.keys
	for k := range t.effects {
		s.row.effects[k] += t.effects[k]
	}
	*t = protocolTx{}
	return violation
}

// check returns the invariant that does not hold.
func (s *protocolState) check() string {
	for offset, key := range protocolKeys {
		if int8(offset) < s.row.next && s.row.effects[key] == 0 {
			return "I1: a record was passed and has no effect"
		}
	}
	for _, n := range s.row.effects {
		if n > 1 {
			return "I2: a key has two effects"
		}
	}
	return ""
}

// done reports whether everything was handled and nothing is under way.
func (s *protocolState) done() bool { return s.row.next == protocolEnd && !s.locked() }
