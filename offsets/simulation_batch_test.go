package offsets_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
)

// batch opens a transaction and does all of a batch but its end.
func (s *simulation) batch(ctx context.Context, w *simWorker, p int32) error {
	c, holds := w.held[p]
	if !holds || c.Next >= simRecords || s.busy(p) {
		return nil
	}
	entries := s.records(w.reads[p], p, c.Next, min(simRecords, c.Next+1+int64(s.choose("records", 5))))
	if s.shares(entries) {
		return nil
	}
	to := offsets.Position{Next: entries[len(entries)-1].Offset + 1, LeaderEpoch: -1, Records: int64(len(entries))}
	tx, next, admissions, err := s.advanceAndAdmit(ctx, w, c, to, entries)
	if tx == nil {
		return err
	}
	s.note("%s passes %+v to %d: %v", w.name, c, to.Next, err)
	s.see("batch", err)
	for _, a := range admissions {
		s.seen[outcomeName(a)] = true
	}
	if wrong := s.oracle.passed(w, c, to, entries, admissions, err); wrong != nil {
		return wrong
	}
	if err == nil {
		err = s.effects(ctx, tx, w, c, next, entries, admissions)
	}
	if err != nil {
		if errors.Is(err, offsets.ErrFenced) || errors.Is(err, offsets.ErrWentBack) {
			delete(w.held, p)
		}
		s.oracle.ended(w, false)
		return tx.Rollback(ctx)
	}
	w.tx, w.moved, w.keys = tx, next, make(map[[16]byte]bool)
	for _, e := range entries {
		w.keys[e.Key] = true
	}
	return nil
}

// records are those of a topic's partition. A topic that was created again has the
// events of the first one, at other offsets.
func (s *simulation) records(topic byte, p int32, from, to int64) []offsets.Entry {
	var entries []offsets.Entry
	for o := from; o < to; o++ {
		e := s.log[p][(o+7*int64(topic))%simRecords]
		e.Offset = o
		entries = append(entries, e)
	}
	return entries
}

// shares reports whether an open transaction is admitting one of the keys.
func (s *simulation) shares(entries []offsets.Entry) bool {
	for _, w := range s.workers {
		for _, e := range entries {
			if w.tx != nil && w.keys[e.Key] {
				return true
			}
		}
	}
	return false
}

// advanceAndAdmit takes one of the ways. No other transaction runs between a look
// and its copy, so that a batch is contested only where the look is blind.
func (s *simulation) advanceAndAdmit(ctx context.Context, w *simWorker, c offsets.Claim, to offsets.Position, entries []offsets.Entry) (tx pgx.Tx, next offsets.Claim, admissions []offsets.Admission, err error) {
	ways := []passFunc{s.ledger.AdvanceAndAdmit, s.ledger.AdvanceAndAdmitContested, inTwo(s.ledger)}
	if tx, err = w.conn.Begin(ctx); err != nil {
		return nil, c, nil, err
	}
	next, admissions, err = ways[s.choose("way", len(ways))](ctx, tx, c, to, entries)
	if !errors.Is(err, offsets.ErrKeyContested) {
		return tx, next, admissions, err
	}
	s.seen["contested"] = true
	if err = tx.Rollback(ctx); err != nil {
		return nil, c, nil, err
	}
	if tx, err = w.conn.Begin(ctx); err != nil {
		return nil, c, nil, err
	}
	next, admissions, err = s.ledger.AdvanceAndAdmitContested(ctx, tx, c, to, entries)
	return tx, next, admissions, err
}

func (s *simulation) effects(ctx context.Context, tx pgx.Tx, w *simWorker, c, next offsets.Claim, entries []offsets.Entry, admissions []offsets.Admission) error {
	if err := writeEffects(ctx, tx, entries, admissions); err != nil {
		return err
	}
	if err := writeChain(ctx, tx, w.name, identity(w.reads[c.Partition]).TopicID, c, next); err != nil {
		return err
	}
	return s.ledger.Account(ctx, tx, next, offsets.Count(admissions))
}

// end ends the open transaction in one of the ways in which one ends. The answer
// to COMMIT may be lost, whatever the server did: then the claim is taken again,
// or the worker is so careless as to believe the one or the other.
func (s *simulation) end(ctx context.Context, w *simWorker) error {
	tx, old, next := w.tx, w.held[w.moved.Partition], w.moved
	how := s.choose("end", 8)
	commits := how < 5
	s.seen[fmt.Sprint("end ", how)] = true
	s.note("%s ends by %d, committed %t", w.name, how, commits)
	w.tx, w.keys = nil, nil
	if commits {
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		w.held[next.Partition] = next
	} else if err := tx.Rollback(ctx); err != nil {
		return err
	}
	s.oracle.ended(w, commits)
	switch how {
	case 0, 5: // no answer
		w.held[old.Partition] = old
		return s.reclaim(ctx, w, old.Partition)
	case 1: // no answer, taken for an abort
		w.held[old.Partition] = old
	case 6: // no answer, taken for a commit
		w.held[next.Partition] = next
	case 7: // crash
		clear(w.held)
	}
	return nil
}
