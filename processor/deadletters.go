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
// A parked one is replayed with all of its record key, from the first on; the
// first that stays makes the others wait. each, if set, is told of every dead
// letter as it is done.
func (p *Processor) ReplayDeadLetters(ctx context.Context, filter offsets.DeadLetterFilter, opts ReplayOptions, each func(Resolved)) error {
	pool, ledger, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	letters, err := ledger.DeadLetters(ctx, pool, filter)
	if err != nil {
		return err
	}
	r := &letterReplay{p: p, pool: pool, ledger: ledger, opts: opts, done: map[int64]bool{}, stuck: map[string]bool{}}
	for i := range letters {
		chain, err := r.chain(ctx, &letters[i])
		if err != nil {
			return err
		}
		for j := range chain {
			resolved, err := r.replay(ctx, &chain[j])
			if err != nil {
				return fmt.Errorf("processor: replay dead letter %d (%s): %w", chain[j].ID, chain[j].Record.Position(), err)
			}
			if each != nil {
				each(resolved)
			}
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
	done   map[int64]bool  // by id
	stuck  map[string]bool // by partition and record key: one of it stays
}

// chain returns the letters to replay for one that was selected: itself, or all
// that wait for the same record key.
func (r *letterReplay) chain(ctx context.Context, d *offsets.StoredDeadLetter) ([]offsets.StoredDeadLetter, error) {
	chain := []offsets.StoredDeadLetter{*d}
	if d.Parked && d.Record.Key != nil {
		var err error
		chain, err = r.ledger.DeadLetters(ctx, r.pool, offsets.DeadLetterFilter{Partitions: []int32{d.Record.Partition}, RecordKey: d.Record.Key})
		if err != nil {
			return nil, err
		}
	}
	left := chain[:0]
	for _, c := range chain {
		if !r.done[c.ID] {
			r.done[c.ID] = true
			left = append(left, c)
		}
	}
	return left, nil
}

// replay handles one letter. An error ends the whole replay; a message that is
// still at fault does not.
func (r *letterReplay) replay(ctx context.Context, d *offsets.StoredDeadLetter) (Resolved, error) {
	line := fmt.Sprint(d.Record.Partition, string(d.Record.Key))
	if d.Parked && r.stuck[line] {
		return Resolved{*d, ResolutionWaiting, errors.New("one before it, of the same record key, stays")}, nil
	}
	resolution, err := r.attempt(ctx, d)
	if err != nil && resolution == "" {
		return Resolved{}, err
	}
	if err != nil {
		r.stuck[line] = true
	}
	return Resolved{*d, resolution, err}, nil
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
	if d.ByPosition() {
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
	admissions, err := r.ledger.Admit(ctx, tx, b.entries)
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
	if outcomes[0].Result != nil {
		return ResolutionApplied, r.ledger.Keep(ctx, tx, b.entries, []json.RawMessage{outcomes[0].Result})
	}
	return ResolutionApplied, nil
}

// DiscardDeadLetters decides that the dead letters which the filter selects
// will never be handled, and keeps the reason. It answers with how many that
// were.
func (p *Processor) DiscardDeadLetters(ctx context.Context, filter offsets.DeadLetterFilter, reason string, each func(offsets.StoredDeadLetter)) (int, error) {
	pool, ledger, err := p.open(ctx)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	letters, err := ledger.DeadLetters(ctx, pool, filter)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range letters {
		var waiting bool
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := ledger.Lock(ctx, tx, letters[i].Record.Partition); err != nil {
				return err
			}
			waiting, err = ledger.Resolve(ctx, tx, &letters[i], offsets.StateDiscarded, reason, false, nil)
			return err
		})
		if err != nil {
			return n, err
		}
		if waiting {
			n++
			each(letters[i])
		}
	}
	return n, nil
}
