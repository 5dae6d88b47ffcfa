package processor

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// attempt is one try at a batch: what it finds out is forgotten if the
// transaction is rolled back.
type attempt struct {
	*transactor
	*batch
	*history
	info BatchInfo
	// insert says that the keys are inserted, since they are or may be contested.
	insert bool
	// careful says that the sink is not told of a first try.
	careful bool

	counts    offsets.Counts
	aside     []*schema.Fault // set aside in this transaction, beside batch.dead
	forgotten []offsets.Entry // admitted, but set aside later
	results   map[int][]byte  // by message
	freed     [][]byte        // record keys that are blocked no more

	isolated int              // messages that were tried in isolation
	searched int              // of them, those at fault that were found by halves
	behind   map[string]int64 // record keys that were parked in it, since which offset
}

// history is what a worker knows of its partition's dead letters.
type history struct {
	rate       rate
	sifting    sifting
	contention contention // of keys,
	rows       contention // and of what the sink writes
	// unknown is the attempt whose COMMIT had no answer last.
	unknown *attempt
	// parked are the record keys that may stand behind a parked dead letter. Only
	// this worker adds to them, so none is missing; one that was resolved since
	// is found out when a record of that key comes.
	parked map[string]bool
}

// admit advances the claim and admits the keys. Records that must wait behind a
// parked one are set aside first, under the lock of the advance.
func (a *attempt) admit(ctx context.Context, tx pgx.Tx, c offsets.Claim) (offsets.Claim, []offsets.Admission, error) {
	candidates := a.candidates()
	if len(candidates) == 0 && a.guardedBy != GuardConstraint {
		a.park(nil)
		if a.insert {
			return a.ledger.AdvanceAndAdmitContested(ctx, tx, c, a.to, a.entries)
		}
		return a.ledger.AdvanceAndAdmit(ctx, tx, c, a.to, a.entries)
	}
	next, err := a.ledger.Advance(ctx, tx, c, a.to)
	if err != nil {
		return c, nil, err
	}
	var blocked [][]byte
	if len(candidates) > 0 {
		if blocked, err = a.ledger.Blocked(ctx, tx, c.Partition, candidates); err != nil {
			return c, nil, err
		}
	}
	a.park(blocked)
	admissions, err := a.guardedBy.admit(ctx, tx, a.ledger, a.entries)
	return next, admissions, err
}

// candidates are the record keys of the batch that may be blocked.
func (a *attempt) candidates() [][]byte {
	if len(a.parked) == 0 {
		return nil
	}
	var keys [][]byte
	seen := map[string]bool{}
	for _, r := range a.records {
		if k := string(r.Key); a.parked[k] && !seen[k] {
			seen[k] = true
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// park sets aside the messages whose record key is blocked: in the database, or
// by a record of this batch that was set aside before them.
func (a *attempt) park(blocked [][]byte) {
	if a.policy.OnError != Park {
		return
	}
	for _, k := range a.candidates() {
		if !slices.ContainsFunc(blocked, func(b []byte) bool { return string(b) == string(k) }) {
			a.freed = append(a.freed, k)
		}
	}
	since := make(map[string]int64, len(blocked))
	for _, k := range blocked {
		since[string(k)] = -1
	}
	for _, f := range a.dead {
		k := string(f.Record.Key)
		if _, ok := since[k]; !ok && f.Record.Key != nil {
			since[k] = f.Record.Offset
		}
	}
	if len(since) == 0 {
		return
	}
	var waiting []*schema.Fault
	for _, r := range a.records {
		if from, ok := since[string(r.Key)]; ok && r.Key != nil && r.Offset > from {
			waiting = append(waiting, schema.Faultf(r, schema.ReasonParked, "waits behind a dead letter of its record key"))
		}
	}
	if len(waiting) > 0 {
		a.batch = a.without(waiting)
	}
}

// judge returns the fresh messages. A key that was used before for another
// payload is the message's own fault, treated by its own policy.
func (a *attempt) judge(admissions []offsets.Admission) ([]int, error) {
	fresh := make([]int, 0, len(admissions))
	for i := range admissions {
		switch admission := &admissions[i]; {
		case admission.Outcome == offsets.Fresh:
			fresh = append(fresh, i)
		case admission.Outcome == offsets.Duplicate:
		case a.policy.OnKeyReuse == HaltPartition:
			return nil, &haltAt{a.conflict(i, admission)}
		case a.policy.OnKeyReuse == Ignore:
			admission.Outcome, admission.Cause = offsets.Duplicate, offsets.Producer
		default:
			a.aside = append(a.aside, a.conflict(i, admission))
		}
	}
	a.counts = offsets.Count(admissions)
	return fresh, nil
}

// conflict is the fault of message i, whose key was used before.
func (b *batch) conflict(i int, a *offsets.Admission) *schema.Fault {
	r := b.records[i]
	return schema.Faultf(r, schema.ReasonKeyReuse, "the key was used at %s/%d@%d for another payload", r.Topic, a.First.Partition, a.First.Offset)
}

// apply hands the fresh messages to the sink, and keeps what it reports.
func (a *attempt) apply(ctx context.Context, tx pgx.Tx, fresh []int) error {
	if len(fresh) == 0 {
		return nil
	}
	if a.isolate || a.sifting.begin {
		return a.isolating(ctx, tx, fresh)
	}
	if !a.careful {
		ctx = schema.FirstTry(ctx)
	}
	outcomes, err := a.messages.apply(ctx, ownedTx{tx}, a.pick(fresh))
	if err == nil {
		a.report(fresh, outcomes)
	}
	return err
}

// pick turns the numbers of messages into their places.
func (b *batch) pick(numbers []int) []int {
	places := make([]int, len(numbers))
	for i, n := range numbers {
		places[i] = b.places[n]
	}
	return places
}

// report keeps what the sink has said of the messages.
func (a *attempt) report(numbers []int, outcomes []schema.Outcome) {
	for i := range outcomes {
		if outcomes[i].Duplicate {
			a.counts.Fresh--
			a.counts.Producer++
		}
		if outcomes[i].Result != nil {
			if a.results == nil {
				a.results = map[int][]byte{}
			}
			a.results[numbers[i]] = outcomes[i].Result
		}
	}
}

// tell lets the pipeline know of the duplicates. One that repeats a message of
// this very batch is given what that has just answered.
func (a *attempt) tell(ctx context.Context, tx pgx.Tx, admissions []offsets.Admission) error {
	if a.policy.RecordDuplicates {
		if err := a.ledger.RecordDuplicates(ctx, tx, a.entries, admissions); err != nil {
			return err
		}
	}
	if !a.hears {
		return nil
	}
	first := map[[16]byte]int{}
	for i := range admissions {
		switch admission := &admissions[i]; admission.Outcome {
		case offsets.Fresh:
			first[a.entries[i].Key] = i
		case offsets.Duplicate:
			d := Duplicate{
				Cause: admission.Cause, Partition: admission.First.Partition, Offset: admission.First.Offset,
				At: admission.ProcessedAt, Result: admission.Result,
			}
			if n, ok := first[a.entries[i].Key]; ok {
				d.Result = a.results[n]
			}
			if err := a.messages.duplicate(ctx, ownedTx{tx}, a.places[i], d); err != nil {
				return err
			}
		case offsets.Conflict:
		}
	}
	return nil
}

// close writes what the batch leaves beside its effects: dead letters, results
// and the account.
func (a *attempt) close(ctx context.Context, tx pgx.Tx, c offsets.Claim) error {
	dead := mergeDead(a.dead, a.aside)
	a.counts.DeadLetters = int64(len(dead))
	a.info.Fresh, a.info.DeadLetters, a.info.Reasons = int(a.counts.Fresh), len(dead), reasonsOf(dead)
	a.info.DuplicatesProducer, a.info.DuplicatesRedelivered = int(a.counts.Producer), int(a.counts.Redelivery)
	if err := a.rate.check(passed{a.to.Records, a.counts.DeadLetters}); err != nil {
		return err
	}
	letters := make([]offsets.DeadLetter, len(dead))
	for i, f := range dead {
		letters[i] = a.policy.letter(f)
	}
	keep, results := a.kept()
	forget := a.forgotten
	if a.guardedBy == GuardConstraint { // there are no keys
		forget, keep, results = nil, nil, nil
	}
	if err := a.ledger.Forget(ctx, tx, forget); err != nil {
		return err
	}
	if err := a.ledger.SetAside(ctx, tx, letters); err != nil {
		return err
	}
	if err := a.ledger.Keep(ctx, tx, keep, results); err != nil {
		return err
	}
	return a.ledger.Account(ctx, tx, c, a.counts)
}

// reasonsOf counts faults by their reason.
func reasonsOf(faults []*schema.Fault) map[schema.Reason]int {
	if len(faults) == 0 {
		return nil
	}
	reasons := map[schema.Reason]int{}
	for _, f := range faults {
		reasons[f.Reason]++
	}
	return reasons
}

// kept are the entries that have a result.
func (a *attempt) kept() (entries []offsets.Entry, results []json.RawMessage) {
	for i := range a.entries {
		if result, ok := a.results[i]; ok {
			entries, results = append(entries, a.entries[i]), append(results, result)
		}
	}
	return entries, results
}

// announce says what was set aside.
func (a *attempt) announce(ctx context.Context) {
	dead := mergeDead(a.dead, a.aside)
	if len(dead) == 0 {
		return
	}
	a.log.LogAttrs(ctx, slog.LevelWarn, "records were set aside as dead letters", slog.String("topic", a.topic), slog.Int("partition", int(a.info.Partition)),
		slog.Int("records", len(dead)), slog.Int64("offset", dead[0].Record.Offset), slog.String("code", string(dead[0].Reason)), slog.Any("reason", dead[0]))
}

// learn updates the history by a batch that was passed.
func (a *attempt) learn() {
	a.rate.add(passed{a.to.Records, a.counts.DeadLetters})
	if a.isolated > 0 {
		a.sifting.learn(a.isolated, len(a.forgotten), a.searched)
	}
	if a.policy.OnError != Park {
		return
	}
	for _, k := range a.freed {
		delete(a.parked, string(k))
	}
	for _, f := range mergeDead(a.dead, a.aside) {
		if f.Record.Key != nil && f.Reason != schema.ReasonKeyReuse {
			a.parked[string(f.Record.Key)] = true
		}
	}
}
