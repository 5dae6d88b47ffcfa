package processor

import (
	"context"
	"fmt"
	"slices"

	"github.com/oncestream/oncestream/schema/tables"
)

// hiddenColumn is a column that differs between runs of the same records.
type hiddenColumn struct {
	tables.Column
	table string
	// shifted says that it takes another clock or another beginning of a sequence
	// to see it; else two runs are enough.
	shifted bool
}

func (h hiddenColumn) name() string { return h.table + "." + h.Name }

// line says why the column differs, and what to do about it.
func (h hiddenColumn) line() string {
	const exclude = "; or, if it may differ, exclude it: --exclude "
	switch {
	case h.Category == "D":
		return h.name() + ": it takes the time of the run (now(), a clock of the process): take the record's own time ($time, Record.Time) or a field" + exclude + h.name()
	case h.Drawn, h.shifted && h.Category == "N":
		return h.name() + ": it takes the next number of a sequence (nextval, an identity), which a transaction that is done again takes anew: take a field of the message, or its key" + exclude + h.name()
	case h.shifted:
		return h.name() + ": it depends on the clock or on a sequence: take the record's own time ($time, Record.Time), a field of the message, or its key" + exclude + h.name()
	}
	return h.name() + ": it is another one in each run (random(), gen_random_uuid(), a clock, the order of a map in Go): derive it from the message or its key" + exclude + h.name()
}

// otherInput runs the range under another clock and with other sequences. It is
// then done once more with all keys forgotten, to see what is idempotent by
// nature.
func (v *verification) otherInput(ctx context.Context) error {
	s, err := v.shop.make(ctx, "other", true)
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
	if err := v.lookForHidden(ctx, s, true); err != nil {
		return err
	}
	v.settleHidden()
	l.close()
	if err := v.naturally(ctx, s); err != nil {
		return err
	}
	return v.shop.drop(ctx, s)
}

// lookForHidden compares a run of the same records with the reference. What
// differs beyond columns is told once.
func (v *verification) lookForHidden(ctx context.Context, s *scratch, shifted bool) error {
	differences, err := v.compare(ctx, s)
	if err != nil {
		return err
	}
	for i := range differences {
		d := &differences[i]
		if err := v.blameColumns(ctx, d); err != nil {
			return err
		}
		for _, c := range d.columns {
			v.hidden = append(v.hidden, hiddenColumn{Column: c, table: d.table, shifted: shifted})
		}
		if !d.rows.None() && !slices.Contains(v.strayed, d.table) {
			v.strayed = append(v.strayed, d.table)
			v.strays = append(v.strays, d.lines()...)
		}
	}
	return nil
}

func (v *verification) settleHidden() {
	var faults []string
	for _, h := range v.hidden {
		v.verdict.Hidden = append(v.verdict.Hidden, h.name())
		faults = append(faults, h.line())
	}
	slices.Sort(v.verdict.Hidden)
	faults = append(faults, v.strays...)
	if len(v.strays) > 0 {
		faults = append(faults, strayRemedy)
	}
	v.verdict.settle(ProofHiddenInput, faults, []string{fmt.Sprintf("the clock %d days ahead, sequences from other numbers, other random numbers: the same tables", int(clockShift.Hours()/24))})
}

const strayRemedy = "runs of the same records do not lead to the same rows: something is remembered outside of the transaction (memory of the process, a connection of its own, another database), or decided by a clock or by chance"

// naturally applies the range once more under another handler, to which all keys
// are new.
func (v *verification) naturally(ctx context.Context, s *scratch) error {
	before, err := v.digests(ctx, s)
	if err != nil {
		return err
	}
	l, err := v.openLap(ctx, s, lapOptions{group: "/natural", handler: "/natural"})
	if err != nil {
		return err
	}
	defer l.close()
	if _, err := l.run(ctx, v.withoutAside()); err != nil {
		return err
	}
	after, err := v.digests(ctx, s)
	if err != nil {
		return err
	}
	p := Proof{Name: ProofNatural, Outcome: Told}
	v.natural = map[string]bool{}
	for i, t := range s.tables {
		v.natural[t.Table] = before[i] == after[i]
		switch {
		case before[i] != after[i]:
			p.Details = append(p.Details, t.Table+": changes when it is applied without the keys: they alone protect it")
		case after[i].Rows > 0:
			p.Details = append(p.Details, t.Table+": stays as it is, even without the keys")
		}
	}
	if len(p.Details) == 0 {
		p.Details = []string{"no table has a row, which says nothing"}
	}
	v.verdict.Proofs = append(v.verdict.Proofs, p)
	return nil
}

// tables writes the tables of the reference into the verdict. Those that have no
// row were not written to.
func (v *verification) tables(ctx context.Context) error {
	v.verdict.Tables = []TableVerdict{}
	for _, t := range v.reference.tables {
		d, err := tables.Digest(ctx, v.shop.conn, t, tables.DigestOptions{Exclude: v.excluded(t.Table)})
		if err != nil {
			return err
		}
		if d.Rows > 0 {
			v.verdict.Tables = append(v.verdict.Tables, TableVerdict{Table: t.Table, Rows: d.Rows, Digest: d.Sum, Natural: v.natural[t.Table]})
		}
	}
	return nil
}
