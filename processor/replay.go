package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// Replay reads a range again under the same handler and expects that every key
// is known: a key that is new shows an effect that was lost, or a record that
// was never read. It runs the batch transaction without its advance, sinks
// included, and rolls each one back, so nothing is changed and no group is
// joined; the pipeline may be running meanwhile. A range that begins at or below
// the floor of a partition, up to which keys were purged, is refused. What a
// person has skipped is counted, and expected to have had no effect.
func (p *Processor) Replay(ctx context.Context, r Range) (Report, error) {
	pool, ledger, err := p.open(ctx)
	if err != nil {
		return Report{}, err
	}
	defer pool.Close()
	progress, err := ledger.Progress(ctx, pool)
	if err != nil {
		return Report{}, err
	}
	spans, err := r.spans(p.cfg.Kafka.Topic, progress)
	if err != nil {
		return Report{}, err
	}
	if err := r.aboveFloors(ctx, pool, ledger, p.cfg.Kafka.Topic, spans); err != nil {
		return Report{}, err
	}
	aside, err := ledger.SetAsideAt(ctx, pool)
	if err != nil {
		return Report{}, err
	}
	skipped, err := ledger.LeftOut(ctx, pool)
	if err != nil {
		return Report{}, err
	}
	source, err := openRange(ctx, p.cfg.Kafka, spans)
	if err != nil {
		return Report{}, err
	}
	defer source.close()
	replay := &replay{p: p, pool: pool, ledger: ledger, aside: aside, skipped: skipped, fresh: map[[16]byte]bool{}}
	replay.report.Partitions = spans
	for !source.done() {
		partition, chunks, err := source.next(ctx)
		if err != nil {
			return replay.report, err
		}
		if err := replay.batch(ctx, partition, chunks); err != nil {
			return replay.report, err
		}
		if r.Progress != nil {
			r.Progress(source.progress())
		}
	}
	if replay.report.Fresh > 0 {
		// Keys may have been purged meanwhile.
		err = r.aboveFloors(ctx, pool, ledger, p.cfg.Kafka.Topic, spans)
	}
	return replay.report, err
}

// spans resolves the range against what the group has read.
func (r Range) spans(topic string, progress []offsets.Progress) ([]RangeReport, error) {
	var spans []RangeReport
	known := map[int32]bool{}
	for _, p := range progress {
		known[p.Partition] = true
		s := RangeReport{Partition: p.Partition, From: p.First, To: p.Next}
		if from, ok := r.From[p.Partition]; ok {
			s.From = max(s.From, from)
		}
		if to, ok := r.To[p.Partition]; ok {
			s.To = min(s.To, to)
		}
		if s.From < s.To {
			spans = append(spans, s)
		}
	}
	if len(progress) == 0 {
		return nil, fmt.Errorf("processor: replay %s: the group has read nothing of it yet", topic)
	}
	for _, bound := range []map[int32]int64{r.From, r.To} {
		for p := range bound {
			if !known[p] {
				return nil, fmt.Errorf("processor: replay %s/%d: the group has no position in this partition", topic, p)
			}
		}
	}
	return spans, nil
}

// aboveFloors refuses a range in which keys were purged: that one is missing
// would say nothing of its effect.
func (r Range) aboveFloors(ctx context.Context, db offsets.DB, ledger *offsets.Ledger, topic string, spans []RangeReport) error {
	if r.BeyondFloor {
		return nil
	}
	floors, err := ledger.Floors(ctx, db)
	errs := []error{err}
	for _, f := range floors {
		i := slices.IndexFunc(spans, func(s RangeReport) bool { return s.Partition == f.Partition && s.From <= f.Offset })
		if i >= 0 {
			errs = append(errs, fmt.Errorf("processor: replay %s/%d@%d: keys up to offset %d were purged, so that a missing one says nothing; "+
				"begin at %d, or set Range.BeyondFloor (--beyond-floor)", topic, f.Partition, spans[i].From, f.Offset, f.Offset+1))
		}
	}
	return errors.Join(errs...)
}

// replay is one run of Replay.
type replay struct {
	p      *Processor
	pool   *pgxpool.Pool
	ledger *offsets.Ledger
	report Report
	// aside are the positions of dead letters: their keys are not kept, so they
	// would look new.
	aside map[offsets.At]bool
	// skipped are the positions that a person has left out.
	skipped []offsets.Span
	// fresh holds the keys that were new: as nothing is committed, they would
	// be new again each time they come.
	fresh map[[16]byte]bool
}

// batch replays what was read of a partition.
func (r *replay) batch(ctx context.Context, partition int32, chunks []chunk) error {
	b, _ := newBatch(ctx, r.p.decoder, false, chunks)
	if b.ends != nil {
		return fmt.Errorf("processor: replay %s/%d@%d: %w", r.p.cfg.Kafka.Topic, partition, b.to.Next, b.ends)
	}
	if len(b.records) > 0 {
		if err := r.transact(ctx, b); err != nil {
			return fmt.Errorf("processor: replay %s: %w", b.records[0].Position(), err)
		}
	}
	for _, f := range b.dead {
		if !r.known(f.Record) && !r.leftOut(f.Record) {
			r.fault(f)
		}
	}
	r.count(partition, int(b.to.Records))
	return nil
}

// transact is the batch transaction without its advance and with a rollback.
func (r *replay) transact(ctx context.Context, b *batch) error {
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // nothing of this transaction is to stay
	if r.p.decoder.guardedBy() == GuardConstraint {
		return r.ask(ctx, tx, b)
	}
	admissions, err := r.ledger.Admit(ctx, tx, b.entries)
	if err != nil {
		return err
	}
	fresh := r.judge(b, admissions)
	if err := r.tell(ctx, tx, b, admissions); err != nil {
		return err
	}
	if len(fresh) == 0 {
		return nil
	}
	err = pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
		_, err := b.messages.apply(ctx, ownedTx{savepoint}, b.pick(fresh))
		return err
	})
	if err != nil && classify(err) != ownFault {
		return err
	}
	if err != nil {
		r.fault(faultOf(err, nil))
	}
	return nil
}

// ask has the sink tell which messages are new, where its constraint is the guard.
func (r *replay) ask(ctx context.Context, tx pgx.Tx, b *batch) error {
	var asked []int
	for i, record := range b.records {
		if !r.known(record) && !r.leftOut(record) {
			asked = append(asked, i)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	outcomes, err := b.messages.apply(ctx, ownedTx{tx}, b.pick(asked))
	if err != nil && classify(err) != ownFault {
		return err
	}
	if err != nil {
		r.fault(faultOf(err, nil))
		return nil
	}
	for n, i := range asked {
		if key := b.entries[i].Key; (len(outcomes) == 0 || !outcomes[n].Duplicate) && !r.fresh[key] {
			r.fresh[key] = true
			r.fresher(b.records[i])
		} else {
			r.report.Duplicates++
		}
	}
	return nil
}

// tell lets the pipeline know of the duplicates, as a run would.
func (r *replay) tell(ctx context.Context, tx pgx.Tx, b *batch, admissions []offsets.Admission) error {
	if !r.p.decoder.hears() {
		return nil
	}
	for i := range admissions {
		if a := &admissions[i]; a.Outcome == offsets.Duplicate {
			d := Duplicate{Cause: offsets.Replay, Partition: a.First.Partition, Offset: a.First.Offset, At: a.ProcessedAt, Result: a.Result}
			if err := b.messages.duplicate(ctx, ownedTx{tx}, b.places[i], d); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge counts the admissions and returns the messages that are new.
func (r *replay) judge(b *batch, admissions []offsets.Admission) []int {
	var fresh []int
	for i := range admissions {
		switch a := &admissions[i]; {
		case a.Outcome != offsets.Duplicate && (r.known(b.records[i]) || r.leftOut(b.records[i])):
		case a.Outcome == offsets.Conflict:
			r.fault(b.conflict(i, a))
		case a.Outcome == offsets.Fresh && !r.fresh[b.entries[i].Key]:
			r.fresh[b.entries[i].Key] = true
			r.fresher(b.records[i])
			fresh = append(fresh, i)
		default:
			r.report.Duplicates++
		}
	}
	return fresh
}

// known counts a record that is a dead letter.
func (r *replay) known(record *schema.Record) bool {
	aside := r.aside[offsets.At{Partition: record.Partition, Offset: record.Offset}]
	if aside {
		r.report.DeadLetters++
	}
	return aside
}

// leftOut counts a record that a person has left out.
func (r *replay) leftOut(record *schema.Record) bool {
	left := slices.ContainsFunc(r.skipped, func(s offsets.Span) bool {
		return s.Partition == record.Partition && s.From <= record.Offset && record.Offset < s.To
	})
	if left {
		r.report.LeftOut++
	}
	return left
}

func (r *replay) count(partition int32, records int) {
	r.report.Records += int64(records)
	if s := r.span(partition); s != nil {
		s.Records += int64(records)
	}
}

func (r *replay) span(partition int32) *RangeReport {
	for i := range r.report.Partitions {
		if r.report.Partitions[i].Partition == partition {
			return &r.report.Partitions[i]
		}
	}
	return nil
}

func (r *replay) fresher(record *schema.Record) {
	r.report.Fresh++
	if s := r.span(record.Partition); s != nil {
		s.Fresh++
	}
	r.example(Example{Position: record.Position(), Reason: ReasonNew, Detail: "its key has had no effect under handler " + r.p.handler})
}

func (r *replay) fault(f *schema.Fault) {
	r.report.Faults++
	e := Example{Reason: f.Reason, Detail: f.Error()}
	if f.Record != nil {
		e.Position = f.Record.Position()
	}
	r.example(e)
}

// maxExamples bounds what a report shows.
const maxExamples = 10

func (r *replay) example(e Example) {
	if len(r.report.Examples) < maxExamples {
		r.report.Examples = append(r.report.Examples, e)
	}
}
