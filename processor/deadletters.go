package processor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// ReplayOptions say how dead letters are replayed.
type ReplayOptions struct {
	// DryRun rolls everything back.
	DryRun bool
	// Fix, if set, makes the payload that is handled in place of the record's,
	// which is kept as it was.
	Fix func(value []byte) ([]byte, error)
	// Overwrite allows a message to be handled although a sink could overwrite
	// with it what a later message has set.
	Overwrite bool
}

// Overwriter is a Sink that can tell whether a message that is handled out of
// order would overwrite newer state.
type Overwriter interface{ Overwrites() bool }

// Resolution is what became of a dead letter that was to be replayed.
type Resolution string

// The resolutions.
const (
	ResolutionApplied   Resolution = "applied"   // its effect was written
	ResolutionDuplicate Resolution = "duplicate" // its key had had its effect
	ResolutionStale     Resolution = "stale"     // the target holds a newer state, and was left as it is
	ResolutionFailed    Resolution = "failed"    // its message is still at fault; it stays
	ResolutionRefused   Resolution = "refused"   // it could overwrite newer state; it stays
	ResolutionWaiting   Resolution = "waiting"   // one before it of the same record key stays; so does it
	ResolutionGone      Resolution = "gone"      // somebody else has resolved it meanwhile
)

// Resolved tells what became of one dead letter.
type Resolved struct {
	Letter     offsets.StoredDeadLetter
	Resolution Resolution
	// Err says why it stays, nil where it does not.
	Err error
}

// ReplayDeadLetters runs the messages of the dead letters that the filter
// selects through the same keys and sinks, each in one transaction that also
// marks it, in the order of their offsets. It may run while the pipeline does
// and may be run twice: a dead letter is handled once.
//
// A parked one is replayed with all that is parked for its record key, from the
// first on; the first that stays makes the others wait. each, if set, is told of
// every dead letter as it is done. They are read a page at a time, see
// [offsets.Ledger.DeadLetters]; what is set aside meanwhile stays for the next
// replay.
func (p *Processor) ReplayDeadLetters(ctx context.Context, filter offsets.DeadLetterFilter, opts ReplayOptions, each func(Resolved)) error {
	pool, ledger, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if each == nil {
		each = func(Resolved) {}
	}
	r := &letterReplay{p: p, pool: pool, ledger: ledger, opts: opts, each: each, walked: map[string]bool{}}
	for d, err := range ledger.DeadLetters(ctx, pool, filter) {
		if err != nil {
			return err
		}
		if d.Parked && d.Record.Key != nil {
			err = r.walk(ctx, d)
		} else {
			_, err = r.replay(ctx, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// letterReplay is one run of ReplayDeadLetters.
type letterReplay struct {
	p      *Processor
	pool   *pgxpool.Pool
	ledger *offsets.Ledger
	opts   ReplayOptions
	each   func(Resolved)
	walked map[string]bool // by partition and record key: what is parked there was replayed, as far as it could be
}

// walk replays, once, all that is parked for the record key of a letter, in
// order up to the first that stays. The others wait.
func (r *letterReplay) walk(ctx context.Context, d *offsets.StoredDeadLetter) error {
	line := fmt.Sprint(d.Record.Partition, string(d.Record.Key))
	if r.walked[line] {
		return nil
	}
	r.walked[line] = true
	stuck := false
	filter := offsets.DeadLetterFilter{Partitions: []int32{d.Record.Partition}, RecordKey: d.Record.Key, Parked: true}
	for d, err := range r.ledger.DeadLetters(ctx, r.pool, filter) {
		switch {
		case err != nil:
			return err
		case stuck:
			r.each(Resolved{*d, ResolutionWaiting, errors.New("one before it, of the same record key, stays")})
			continue
		}
		if stuck, err = r.replay(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// replay handles one letter and tells whether it stays. An error ends the whole
// replay; a message that is still at fault does not.
func (r *letterReplay) replay(ctx context.Context, d *offsets.StoredDeadLetter) (stays bool, err error) {
	resolution, err := r.attempt(ctx, d)
	if err != nil && resolution == "" {
		return false, fmt.Errorf("processor: replay dead letter %d (%s): %w", d.ID, d.Record.Position(), err)
	}
	r.each(Resolved{*d, resolution, err})
	return err != nil, nil
}

// attempt is the transaction of one letter. An error beside a resolution says
// why the letter stays.
func (r *letterReplay) attempt(ctx context.Context, d *offsets.StoredDeadLetter) (Resolution, error) {
	if o, ok := r.p.decoder.overwriter(); ok && o.Overwrites() && !d.Parked && !r.opts.Overwrite {
		return ResolutionRefused, errors.New("it could overwrite what a later message has set: give the upsert a version, use on_error: park, or replay it with --overwrite")
	}
	record, fixed, err := r.record(ctx, d)
	if err != nil && permanent(err) {
		return ResolutionFailed, err
	}
	if err != nil {
		return "", err
	}
	b := &batch{}
	if err := r.p.decoder.decode(ctx, b, record); err != nil {
		if unavailable(err) {
			return "", err
		}
		return ResolutionFailed, err
	}
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // after a commit there is nothing to roll back
	if err := r.ledger.Lock(ctx, tx, record.Partition); err != nil {
		return "", err
	}
	resolution, err := r.effect(ctx, tx, b)
	if err != nil {
		return resolution, err
	}
	waiting, err := r.ledger.Resolve(ctx, tx, d, offsets.StateReplayed, string(resolution), resolution == ResolutionDuplicate, fixed)
	if err != nil {
		return "", err
	}
	if !waiting {
		return ResolutionGone, nil
	}
	if r.opts.DryRun {
		return resolution, nil
	}
	if err := tx.Commit(ctx); err != nil {
		if classify(err) == ownFault { // a constraint that was deferred to COMMIT
			return ResolutionFailed, err
		}
		return "", err
	}
	return resolution, nil
}

// record is the record to handle: as it was, read again by its position where
// its value was not kept, with the fixed payload where there is one.
func (r *letterReplay) record(ctx context.Context, d *offsets.StoredDeadLetter) (record *schema.Record, fixed []byte, err error) {
	again := d.Record
	if d.ByPosition {
		if again, err = fetchRecord(ctx, r.p.cfg.Kafka, d.Record); err != nil {
			return nil, nil, err
		}
	}
	if r.opts.Fix != nil {
		if fixed, err = r.opts.Fix(again.Value); err != nil {
			return nil, nil, schema.Faultf(&again, schema.ReasonHandler, "fix the payload: %w", err)
		}
		again.Value = fixed
	}
	return &again, fixed, nil
}

// effect admits the message's key and hands the message to the sink.
func (r *letterReplay) effect(ctx context.Context, tx pgx.Tx, b *batch) (Resolution, error) {
	admissions, err := r.p.decoder.guardedBy().admit(ctx, tx, r.ledger, b.entries)
	if err != nil {
		return "", err
	}
	switch a := &admissions[0]; a.Outcome {
	case offsets.Duplicate:
		return ResolutionDuplicate, nil
	case offsets.Conflict:
		return ResolutionFailed, b.conflict(0, a)
	case offsets.Fresh:
	}
	outcomes, err := b.messages.apply(ctx, ownedTx{tx}, b.places)
	switch {
	case err != nil && classify(err) == ownFault:
		return ResolutionFailed, err
	case err != nil:
		return "", err
	case len(outcomes) == 0:
		return ResolutionApplied, nil
	case outcomes[0].Duplicate:
		return ResolutionDuplicate, nil
	case outcomes[0].Stale:
		return ResolutionStale, nil
	}
	if outcomes[0].Result != nil && r.p.decoder.guardedBy() != GuardConstraint {
		return ResolutionApplied, r.ledger.Keep(ctx, tx, b.entries, []json.RawMessage{outcomes[0].Result})
	}
	return ResolutionApplied, nil
}

// DiscardDeadLetters decides that the dead letters which the filter selects
// will never be handled, and keeps the reason. each is told of every one as it is
// done, without its value. It answers with how many that were.
func (p *Processor) DiscardDeadLetters(ctx context.Context, filter offsets.DeadLetterFilter, reason string, each func(offsets.StoredDeadLetter)) (int, error) {
	pool, ledger, err := p.open(ctx)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	filter.WithoutValues = true
	n := 0
	for d, err := range ledger.DeadLetters(ctx, pool, filter) {
		if err != nil {
			return n, err
		}
		waiting, err := discard(ctx, pool, ledger, d, reason)
		if err != nil {
			return n, err
		}
		if waiting {
			n++
			each(*d)
		}
	}
	return n, nil
}

// discard resolves one letter and reports whether it was still waiting.
func discard(ctx context.Context, pool *pgxpool.Pool, ledger *offsets.Ledger, d *offsets.StoredDeadLetter, reason string) (waiting bool, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := ledger.Lock(ctx, tx, d.Record.Partition); err != nil {
			return err
		}
		waiting, err = ledger.Resolve(ctx, tx, d, offsets.StateDiscarded, reason, false, nil)
		return err
	})
	return waiting, err
}
