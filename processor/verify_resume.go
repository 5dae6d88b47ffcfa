package processor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// cutting is one way to cut batches.
type cutting struct {
	name string
	lapOptions
}

// cuttings are one record, few, and all that there are in one transaction, and
// one with cuts of the connection. Of a large range the small ones are larger, as
// each transaction takes its time.
func (v *verification) cuttings() []cutting {
	all := int(v.verdict.Records)
	one := max(1, all/manyBatches)
	sweep := max(one, min(all/sweeps, sweepRecords))
	return []cutting{
		{fmt.Sprintf("batches of %d", one), lapOptions{batch: one}},
		{fmt.Sprintf("batches of %d", 7*one), lapOptions{batch: 7 * one}},
		{"one batch for each partition", lapOptions{batch: all}},
		{"a cut of the connection at each step", lapOptions{batch: sweep, cuts: newCutter(v.chooser(all / sweep))}},
	}
}

const (
	// sweeps is about how many batches are cut at all of their steps, and
	// sweepRecords how many records each of them has at most: a sink may make
	// statements for each.
	sweeps       = 3
	sweepRecords = 8
	// manyBatches is about how many transactions a run has at most.
	manyBatches = 10_000
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

const orderRemedy = "what a message does depends on which came before it (the last one wins, or an account must not be overdrawn): give messages of one row the same record key, or let a version decide (upsert.version); a column that takes the offset differs by itself and may be excluded (--exclude)"
