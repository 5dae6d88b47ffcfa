package processor

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables"
)

// Replay reads a range again under the same handler and expects that every key
// is known: a key that is new shows an effect that was lost, or a record that
// was never read. It runs the batch transaction without its advance, sinks
// included, and rolls each one back, so nothing is changed and no group is
// joined; the pipeline may be running meanwhile. A range that begins at or below
// the floor of a partition, up to which keys were purged, is refused. What a
// person has skipped is counted, and expected to have had no effect.
//
// The effects of what is new are written and measured before they are rolled back:
// the report says what would change in which table.
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
	spans, err := r.resolve(ctx, p.cfg.Kafka, progress)
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
	replay := &replay{
		p: p, pool: pool, ledger: ledger, aside: aside, skipped: skipped,
		fresh: map[[16]byte]bool{}, changes: map[tables.Name]tables.Activity{},
	}
	replay.report.Partitions, replay.report.Compacted = spans, p.recognise(ctx)
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
	replay.report.Changes = replay.changed()
	if replay.report.Fresh > 0 {
		// Keys may have been purged meanwhile.
		err = r.aboveFloors(ctx, pool, ledger, p.cfg.Kafka.Topic, spans)
	}
	return replay.report, err
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
	// changes are what the new effects have written.
	changes map[tables.Name]tables.Activity
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
		if err := r.persist(ctx, b); err != nil {
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

// judge returns the messages that are new. Those that were set aside when they
// were read first, or that a person has left out, are not among them. It counts
// nothing yet: the batch may be tried again.
func (r *replay) judge(b *batch, admissions []offsets.Admission) (fresh []int) {
	for i := range admissions {
		if admissions[i].Outcome == offsets.Fresh && !r.fresh[b.entries[i].Key] && !r.setAside(b.records[i]) && !r.skips(b.records[i]) {
			fresh = append(fresh, i)
		}
	}
	return fresh
}

// account counts what has become of a batch.
func (r *replay) account(b *batch, admissions []offsets.Admission) {
	for i := range admissions {
		switch a := &admissions[i]; {
		case a.Outcome != offsets.Duplicate && (r.known(b.records[i]) || r.leftOut(b.records[i])):
		case a.Outcome == offsets.Conflict:
			r.fault(b.conflict(i, a))
		case a.Outcome == offsets.Fresh && !r.fresh[b.entries[i].Key]:
			r.fresh[b.entries[i].Key] = true
			r.fresher(b.records[i], b.messages.key(b.places[i]))
		default:
			r.report.Duplicates++
		}
	}
}

func (r *replay) setAside(record *schema.Record) bool {
	return r.aside[offsets.At{Partition: record.Partition, Offset: record.Offset}]
}

// known counts a record that is a dead letter.
func (r *replay) known(record *schema.Record) bool {
	aside := r.setAside(record)
	if aside {
		r.report.DeadLetters++
	}
	return aside
}

// skips reports whether a person has left the record out.
func (r *replay) skips(record *schema.Record) bool {
	return slices.ContainsFunc(r.skipped, func(s offsets.Span) bool { return s.Holds(record.Partition, record.Offset) })
}

// leftOut counts a record that a person has left out.
func (r *replay) leftOut(record *schema.Record) bool {
	left := r.skips(record)
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

func (r *replay) fresher(record *schema.Record, key schema.Key) {
	r.report.Fresh++
	if s := r.span(record.Partition); s != nil {
		s.Fresh++
	}
	r.example(Example{Position: record.Position(), Key: key.String(), Reason: ReasonNew, Detail: "its key has had no effect under handler " + r.p.handler})
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
