package offsets_test

import (
	"errors"
	"fmt"
	"maps"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// oracle is the ledger once more, in Go maps and without concurrency. A nil
// oracle agrees with everything.
type oracle struct {
	now, old ledgerState
	open     map[*simWorker]ledgerState // what holds if the transaction commits: its own row and keys
}

type ledgerState struct {
	rows map[int32]ledgerRow
	keys map[[16]byte]offsets.Entry
}

type ledgerRow struct {
	epoch, first, next, records, producer, redelivery, rewound, skipped int64
	topic                                                               byte
}

func newOracle() *oracle {
	return &oracle{now: newLedgerState(), old: newLedgerState(), open: make(map[*simWorker]ledgerState)}
}

func newLedgerState() ledgerState {
	return ledgerState{rows: make(map[int32]ledgerRow), keys: make(map[[16]byte]offsets.Entry)}
}

func (s ledgerState) clone() ledgerState {
	return ledgerState{rows: maps.Clone(s.rows), keys: maps.Clone(s.keys)}
}

func (o *oracle) claimed(got offsets.Claim, topic byte) error {
	if o == nil {
		return nil
	}
	row, known := o.now.rows[got.Partition]
	if known && row.topic != topic {
		return violation{fmt.Sprintf("claim: topic %d was granted a position of topic %d", topic, row.topic)}
	}
	row.topic = topic
	row.epoch++
	o.now.rows[got.Partition] = row
	return differs("claim", got, row.claim(got.Partition))
}

// refused foretells that a claim is refused: the position is of another topic.
func (o *oracle) refused(got offsets.Refusal) error {
	if o == nil {
		return nil
	}
	row := o.now.rows[got.Partition]
	want := offsets.Refusal{Topic: "orders", Partition: got.Partition, Stored: identity(row.topic), Seen: got.Seen, Next: row.next, Epoch: row.epoch}
	if got.Seen == identity(row.topic) {
		return violation{fmt.Sprintf("claim: topic %d was refused its own position", row.topic)}
	}
	return differs("refusal", got, want)
}

func (r ledgerRow) claim(p int32) offsets.Claim {
	return offsets.Claim{Partition: p, Epoch: r.epoch, Next: r.next, LeaderEpoch: -1}
}

func (o *oracle) reclaimed(c, got offsets.Claim, err error) error {
	if o == nil {
		return nil
	}
	row, known := o.now.rows[c.Partition]
	if !known || row.epoch != c.Epoch {
		return differsErr("reclaim", err, o.why(c))
	}
	row.epoch++
	o.now.rows[c.Partition] = row
	if row.next < c.Next {
		return differsErr("reclaim", err, offsets.ErrWentBack)
	}
	return errors.Join(differsErr("reclaim", err, nil), differs("reclaim", got, row.claim(c.Partition)))
}

// why is nil where the claim matches the row.
func (o *oracle) why(c offsets.Claim) error {
	row, known := o.now.rows[c.Partition]
	switch {
	case known && row.epoch == c.Epoch && row.next == c.Next:
		return nil
	case !known || row.epoch < c.Epoch || row.epoch == c.Epoch && row.next < c.Next:
		return offsets.ErrWentBack
	default:
		return offsets.ErrFenced
	}
}

// passed foretells the answers to a batch and notes what its transaction holds.
func (o *oracle) passed(w *simWorker, c offsets.Claim, to offsets.Position, entries []offsets.Entry, got []offsets.Admission, err error) error {
	if o == nil {
		return nil
	}
	want := o.why(c)
	if want != nil || err != nil {
		return differsErr("batch", err, want)
	}
	tx := newLedgerState()
	row := o.now.rows[c.Partition]
	row.next, row.records = to.Next, row.records+to.Records
	var admissions []offsets.Admission
	for _, e := range entries {
		a := o.admit(tx, e)
		if a.Outcome == offsets.Duplicate && a.Cause == offsets.Producer {
			row.producer++
		}
		if a.Outcome == offsets.Duplicate && a.Cause == offsets.Redelivery {
			row.redelivery++
		}
		admissions = append(admissions, a)
	}
	tx.rows[c.Partition] = row
	o.open[w] = tx
	return differs("admissions", got, admissions)
}

func (o *oracle) admit(tx ledgerState, e offsets.Entry) offsets.Admission {
	first, known := o.now.keys[e.Key]
	if !known {
		first, known = tx.keys[e.Key]
	}
	switch {
	case !known:
		tx.keys[e.Key] = e
		return offsets.Admission{Outcome: offsets.Fresh}
	case first.PayloadSum != e.PayloadSum:
		return offsets.Admission{Outcome: offsets.Conflict, First: first}
	case first == e:
		return offsets.Admission{Outcome: offsets.Duplicate, Cause: offsets.Redelivery, First: first}
	default:
		return offsets.Admission{Outcome: offsets.Duplicate, Cause: offsets.Producer, First: first}
	}
}

func (o *oracle) ended(w *simWorker, committed bool) {
	if o == nil {
		return
	}
	if committed {
		maps.Copy(o.now.rows, o.open[w].rows)
		maps.Copy(o.now.keys, o.open[w].keys)
	}
	delete(o.open, w)
}

func (o *oracle) snapshot() {
	if o != nil {
		o.old = o.now.clone()
	}
}

func (o *oracle) restore() {
	if o != nil {
		o.now = o.old.clone()
	}
}

// compare holds the tables to the model.
func (o *oracle) compare(db *tablestest.DB) error {
	if o == nil {
		return nil
	}
	got, want := make(map[string]bool), make(map[string]bool)
	for _, row := range db.Rows(`
		select format('%s: topic %s, epoch %s, %s to %s, %s records, %s and %s duplicates, %s rewound, %s skipped', partition, topic_id, epoch,
			first_offset, next_offset, records, duplicates_producer, duplicates_redelivery, rewound, skipped) from consumer_offset
		union all
		select format('%s at %s@%s', convert_from(uuid_send(key), 'UTF8'), partition, record_offset) from processed_message`) {
		got[row[0]] = true
	}
	for p, row := range o.now.rows {
		want[fmt.Sprintf("%d: topic %s, epoch %d, %d to %d, %d records, %d and %d duplicates, %d rewound, %d skipped", p, uuid.UUID(identity(row.topic).TopicID), row.epoch,
			row.first, row.next, row.records, row.producer, row.redelivery, row.rewound, row.skipped)] = true
	}
	for _, e := range o.now.keys {
		want[fmt.Sprintf("%s at %d@%d", e.Key, e.Partition, e.Offset)] = true
	}
	return differs("tables", got, want)
}

func differs[T any](what string, got, want T) error {
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(offsets.Admission{}, "ProcessedAt")); diff != "" {
		return violation{what + " (-model +ledger):\n" + diff}
	}
	return nil
}

func differsErr(what string, got, want error) error {
	if !errors.Is(got, want) {
		return violation{fmt.Sprintf("%s: got %v, want %v", what, got, want)}
	}
	return nil
}
