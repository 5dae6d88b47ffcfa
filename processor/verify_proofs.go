package processor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables"
)

// again runs the range a second and a third time.
func (v *verification) again(ctx context.Context) error {
	s, err := v.shop.make(ctx, "again", false)
	if err != nil {
		return err
	}
	l, err := v.openLap(ctx, s, lapOptions{})
	if err != nil {
		return err
	}
	defer l.close()
	if _, err = l.run(ctx, v.all); err != nil {
		return err
	}
	if err := v.lookForHidden(ctx, s, false); err != nil {
		return err
	}
	before, err := v.digests(ctx, s)
	if err != nil {
		return err
	}
	repeated := v.withoutAside()
	if err := l.rewind(ctx, repeated); err != nil {
		return err
	}
	if v.againUnder != "" {
		l.close()
		if l, err = v.openLap(ctx, s, lapOptions{handler: v.againUnder}); err != nil {
			return err
		}
	}
	faults, details, err := v.repeat(ctx, l, before, repeated, samePositions)
	if err != nil {
		return err
	}
	if v.opts.OncePerPosition {
		details = append(details, newPositions+": not tried, as the producer never sends a message twice")
	} else if len(faults) == 0 {
		later := make([]stretch, len(repeated))
		for i := range repeated {
			later[i] = repeated[i].later()
		}
		more, also, err := v.repeat(ctx, l, before, later, newPositions)
		if err != nil {
			return err
		}
		faults, details = append(faults, more...), append(details, also...)
	}
	v.verdict.settle(ProofAgain, faults, details)
	return v.shop.drop(ctx, s)
}

// repeat runs stretches that had their effects, and looks for more.
func (v *verification) repeat(ctx context.Context, l *lap, before []tables.TableDigest, stretches []stretch, where string) (faults, details []string, err error) {
	passed, err := l.run(ctx, stretches)
	if err != nil {
		return nil, nil, err
	}
	after, err := v.digests(ctx, l.scratch)
	if err != nil {
		return nil, nil, err
	}
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		t := v.reference.tables[i]
		d, _, err := v.compareRows(ctx, t, l.scratch.tables[i])
		if err != nil {
			return nil, nil, err
		}
		faults = append(faults, fmt.Sprintf("%s: %s had %d rows and has %d", where, t.Table, before[i].Rows, after[i].Rows))
		faults = append(faults, d.lines()...)
	}
	switch {
	case len(faults) > 0 && passed.applied == 0:
		faults = append(faults, where+", no key was new: what is written for a duplicate (OnDuplicate) is written each time")
	case len(faults) > 0:
		faults = append(faults, fmt.Sprintf("%s, %d messages had an effect again: %s", where, passed.applied, againRemedy))
	case passed.applied > 0 && where == samePositions:
		faults = append(faults, fmt.Sprintf("%s: %d messages had an effect again, although no table shows it", where, passed.applied))
	case passed.applied > 0:
		details = append(details, fmt.Sprintf("%s: %d messages have another key there and were applied again; no table has changed", where, passed.applied))
	default:
		details = append(details, fmt.Sprintf("%s: %d records, 0 effects, no table has changed", where, passed.records))
	}
	return faults, details, nil
}

const (
	samePositions = "at the same positions"
	newPositions  = "at new positions"
)

const againRemedy = "an effect must be written only for a message whose key is new, and the key be one that the producer chooses, which a message keeps wherever it comes (not its position)"

// digests are those of all columns that are not excluded by name.
func (v *verification) digests(ctx context.Context, s *scratch) ([]tables.TableDigest, error) {
	all := make([]tables.TableDigest, len(s.tables))
	for i, t := range s.tables {
		var err error
		if all[i], err = tables.Digest(ctx, v.shop.conn, t, tables.DigestOptions{Exclude: v.excludedByName(t.Table)}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// withoutAside leaves out the records that were set aside: their keys are not
// kept, and what was wrong with one may be right the next time.
func (v *verification) withoutAside() []stretch {
	rest := slices.Clone(v.all)
	for i := range rest {
		s := &rest[i]
		s.records = nil
		for _, r := range v.all[i].records {
			if !v.aside[offsets.At{Partition: r.Partition, Offset: r.Offset}] {
				s.records = append(s.records, r)
			}
		}
	}
	return rest
}

// cutting is one way to cut batches.
type cutting struct {
	name string
	lapOptions
}

// cuttings are one record, few, and all that there are in one transaction, and
// one with cuts of the connection.
func (v *verification) cuttings() []cutting {
	all := int(v.verdict.Records)
	sweep := max(1, min(all/sweeps, sweepRecords))
	return []cutting{
		{"batches of 1 record", lapOptions{batch: 1}},
		{"batches of 7 records", lapOptions{batch: 7}},
		{"one batch a partition", lapOptions{batch: all}},
		{"a cut of the connection at each step", lapOptions{batch: sweep, cuts: newCutter(v.chooser(all / sweep))}},
	}
}

const (
	// sweeps is about how many batches are cut at all of their steps, and
	// sweepRecords how many records each of them has at most: a sink may make
	// statements for each.
	sweeps       = 3
	sweepRecords = 8
)

// chooser spreads the batches that are cut over all, and adds the first ones that
// set something aside, as they take other steps.
func (v *verification) chooser(batches int) func(BatchInfo) bool {
	every := max(1, batches/sweeps)
	type place struct {
		partition int32
		from      int64
	}
	chosen := map[place]bool{}
	more := 1
	return func(b BatchInfo) bool {
		at := place{b.Partition, b.From}
		yes, seen := chosen[at]
		if !seen {
			yes = len(chosen)%every == 0
			if !yes && more > 0 && v.setsAside(b) {
				yes, more = true, more-1
			}
			chosen[at] = yes
		}
		return yes
	}
}

func (v *verification) setsAside(b BatchInfo) bool {
	for at := range v.aside {
		if at.Partition == b.Partition && at.Offset >= b.From && at.Offset < b.To {
			return true
		}
	}
	return false
}

// resume runs the range with other batches, and with cuts.
func (v *verification) resume(ctx context.Context) error {
	var faults, details []string
	for i, c := range v.cuttings() {
		differences, err := v.lapOnce(ctx, fmt.Sprintf("resume%d", i+1), c.lapOptions, v.all)
		if err != nil {
			return err
		}
		detail := c.name
		if c.cuts != nil {
			if v.verdict.Cuts, err = c.cuts.report(); err != nil {
				return err
			}
			detail = fmt.Sprintf("%d cut points (before, within and after each of up to %d sends, COMMIT included), %d cuts in %d transactions",
				v.verdict.Cuts.Points, v.verdict.Cuts.Sends, v.verdict.Cuts.Cuts, v.verdict.Cuts.Batches)
		}
		details = append(details, detail+": the same tables")
		faults = append(faults, faultLines(c.name, differences)...)
	}
	if len(faults) > 0 {
		faults = append(faults, resumeRemedy)
	}
	v.verdict.settle(ProofResume, faults, details)
	return nil
}

const resumeRemedy = "all that a sink writes and remembers must be in the transaction that it is given, so that a rollback undoes it: no connection of its own, no memory of the process; and what a batch does must not depend on which messages share it"

// lapOnce runs stretches in a scratch of their own and compares.
func (v *verification) lapOnce(ctx context.Context, name string, o lapOptions, stretches []stretch) (_ []difference, err error) {
	s, err := v.shop.make(ctx, name, false)
	if err != nil {
		return nil, err
	}
	l, err := v.openLap(ctx, s, o)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if _, err := l.run(ctx, stretches); err != nil {
		return nil, err
	}
	differences, err := v.compare(ctx, s)
	return differences, errors.Join(err, v.shop.drop(ctx, s))
}

func faultLines(what string, differences []difference) []string {
	var lines []string
	for i := range differences {
		for _, line := range differences[i].lines() {
			lines = append(lines, what+": "+line)
		}
	}
	return lines
}

// order runs the records of different record keys in another order.
func (v *verification) order(ctx context.Context) error {
	if !v.opts.Order {
		v.verdict.Proofs = append(v.verdict.Proofs, Proof{Name: ProofOrder, Outcome: NotTried, Details: []string{"not asked for (--order)"}})
		return nil
	}
	lot := rand.New(rand.NewPCG(v.opts.Seed, 0))
	shuffled := make([]stretch, len(v.all))
	for i := range v.all {
		shuffled[i] = v.all[i].shuffled(lot)
	}
	lot.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	differences, err := v.lapOnce(ctx, "order", lapOptions{}, shuffled)
	if err != nil {
		return err
	}
	// The records have changed places, and so have those that the ledger names.
	faults := faultLines("in another order", slices.DeleteFunc(differences, func(d difference) bool { return d.ledger }))
	if len(faults) > 0 {
		faults = append(faults, orderRemedy)
	}
	v.verdict.settle(ProofOrder, faults, []string{fmt.Sprintf("records of different record keys in another order, each key in its own (seed %d): the same tables", v.opts.Seed)})
	return nil
}

const orderRemedy = "the last of several messages wins, whichever that is: give messages of one row the same record key, or let a version decide (upsert.version); a column that takes the offset differs by itself and may be excluded (--exclude)"
