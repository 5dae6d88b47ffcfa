package processor

import (
	"context"
	"fmt"
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
	defer func() { l.close() }()
	if _, err = l.run(ctx, v.all); err != nil {
		return err
	}
	if err := v.lookForHidden(ctx, s, false); err != nil {
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
	if err := v.repeatTwice(ctx, l, repeated); err != nil {
		return err
	}
	return v.shop.drop(ctx, s)
}

// repeatTwice runs stretches at their positions, and if that had no effect at new
// ones, too.
func (v *verification) repeatTwice(ctx context.Context, l *lap, stretches []stretch) error {
	before, err := v.digests(ctx, l.scratch)
	if err != nil {
		return err
	}
	faults, details, err := v.repeat(ctx, l, before, stretches, samePositions)
	if err != nil {
		return err
	}
	switch {
	case v.opts.OncePerPosition:
		details = append(details, newPositions+": not tried, as the producer never sends a message twice")
	case len(faults) == 0:
		later := make([]stretch, len(stretches))
		for i := range stretches {
			later[i] = stretches[i].later()
		}
		more, also, err := v.repeat(ctx, l, before, later, newPositions)
		if err != nil {
			return err
		}
		faults, details = append(faults, more...), append(details, also...)
	}
	v.verdict.settle(ProofAgain, faults, details)
	return nil
}

// repeat runs stretches that had their effects, and looks for more.
func (v *verification) repeat(ctx context.Context, l *lap, before []tables.TableDigest, stretches []stretch, where string) (faults, details []string, err error) {
	passed, err := l.run(ctx, stretches)
	if err != nil {
		return nil, nil, err
	}
	if faults, err = v.changes(ctx, l.scratch, before, where); err != nil {
		return nil, nil, err
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

// changes tells of the tables that are not what they were, row by row.
func (v *verification) changes(ctx context.Context, s *scratch, before []tables.TableDigest, where string) ([]string, error) {
	after, err := v.digests(ctx, s)
	if err != nil {
		return nil, err
	}
	var faults []string
	for i, t := range v.reference.tables {
		if before[i] == after[i] {
			continue
		}
		d, hidden, err := v.compareRows(ctx, t, s.tables[i])
		if err != nil {
			return nil, err
		}
		faults = append(faults, fmt.Sprintf("%s: %s had %d rows and has %d", where, t.Table, before[i].Rows, after[i].Rows))
		if hidden {
			faults = append(faults, t.Table+": what has changed are columns that differ from run to run")
		} else {
			faults = append(faults, d.lines()...)
		}
	}
	return faults, nil
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
