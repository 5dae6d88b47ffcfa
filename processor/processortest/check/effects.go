package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/apd/v3"
)

// noLoss looks for the effect of each record that was passed.
func (l *log) noLoss(v *Verdict) {
	for i := range l.Records {
		r := &l.Records[i]
		if !l.passed(r) || l.skipped(r) {
			continue
		}
		v.Checked++
		if r.Poison == "" && len(l.effects[r.ID]) == 0 && len(l.dead[r.place()]) == 0 {
			v.violate("%s: %s was passed and has no effect", r.place(), r.ID)
		}
		if r.Poison != "" && len(l.dead[r.place()]) == 0 {
			v.violate("%s: a poison record (%s) was passed and is no dead letter", r.place(), r.Poison)
		}
	}
}

// noDouble looks for identities with two effects, now and in the samples.
func (l *log) noDouble(v *Verdict) {
	for id, all := range l.effects {
		v.Checked++
		if len(all) > 1 {
			v.violate("%s has %d effects, at %s and %s", id, len(all), all[0].at(), all[1].at())
		}
	}
	for _, s := range l.Samples {
		v.Checked++
		if s.Doubles > 0 {
			v.violate("at %s %d identities had two effects", s.At.Format(clock), s.Doubles)
		}
	}
}

const clock = "15:04:05.000"

// conservation adds the balances up, now and in the samples.
func (l *log) conservation(v *Verdict) {
	sums := map[string]*apd.Decimal{}
	for _, b := range l.Balances {
		v.Checked++
		add(v, sums, b.Currency, b.Amount, false)
	}
	for _, currency := range slices.Sorted(maps.Keys(sums)) {
		if !sums[currency].IsZero() {
			v.violate("the balances in %s add up to %s", currency, sums[currency].Text('f'))
		}
	}
	for _, s := range l.Samples {
		v.Checked++
		sum := map[string]*apd.Decimal{}
		if add(v, sum, "", s.Sum, false); !sum[""].IsZero() {
			v.violate("at %s the balances added up to %s", s.At.Format(clock), s.Sum)
		}
	}
}

// add adds an amount, exactly.
func add(v *Verdict, sums map[string]*apd.Decimal, key, amount string, negative bool) {
	if sums[key] == nil {
		sums[key] = new(apd.Decimal)
	}
	d, _, err := apd.NewFromString(amount)
	if err != nil {
		v.violate("%q is no amount", amount)
		return
	}
	if negative {
		d.Neg(d)
	}
	if condition, err := exact.Add(sums[key], sums[key], d); err != nil || condition.Inexact() {
		v.violate("%s + %s cannot be computed exactly", sums[key], d)
	}
}

// exact has digits enough for any sum of a run.
var exact = apd.BaseContext.WithPrecision(100)

// order looks at the rows of each entity, by partition, in the order in which
// they were written.
func (l *log) order(v *Verdict) {
	type lane struct {
		entity    string
		partition int32
		log       int
	}
	rows := slices.Clone(l.Appended)
	slices.SortFunc(rows, func(a, b Append) int { return int(a.At - b.At) })
	last := map[lane]Append{}
	for _, a := range rows {
		v.Checked++
		at := lane{a.Entity, a.Partition, l.logOf(a)}
		if before, ok := last[at]; ok && before.Offset >= a.Offset {
			v.violate("%s: the effect of %s was written after that of %s", a.Entity, a.at(), before.at())
		}
		last[at] = a
	}
}

// at is where the record of the row was.
func (a *Append) at() place { return place{partition: a.Partition, offset: a.Offset} }

// logOf is which of the partition's logs the row comes from.
func (l *log) logOf(a Append) int {
	for _, r := range l.byID[a.ID] {
		if r.Partition == a.Partition && r.Offset == a.Offset {
			return r.Log
		}
	}
	return 0
}

// oracle computes the tables from the log, without what an operator has left out,
// and compares.
func (l *log) oracle(v *Verdict) {
	balances, totals, counts := map[string]*apd.Decimal{}, map[string]*apd.Decimal{}, map[string]int64{}
	for id, all := range l.byID {
		if !slices.ContainsFunc(all, func(r *Record) bool { return l.passed(r) && !l.skipped(r) }) {
			continue
		}
		v.Checked++
		r := all[0]
		add(v, balances, r.From+" "+r.Currency, r.Amount, true)
		add(v, balances, r.To+" "+r.Currency, r.Amount, false)
		add(v, totals, r.Entity, r.Amount, false)
		counts[r.Entity]++
		l.sameRow(v, id, all)
	}
	theirs := map[string]string{}
	for _, b := range l.Balances {
		theirs[b.Account+" "+b.Currency] = b.Amount
	}
	same(v, "balance of", balances, theirs)
	theirs = map[string]string{}
	for _, c := range l.Counters {
		theirs[c.Entity] = c.Total
		if c.N != counts[c.Entity] {
			v.violate("the counter of %s is %d, expected %d", c.Entity, c.N, counts[c.Entity])
		}
	}
	same(v, "total of", totals, theirs)
}

// sameRow compares the row of an identity with its records: it must come from
// one of them.
func (l *log) sameRow(v *Verdict, id string, records []*Record) {
	for _, a := range l.effects[id] {
		if !slices.ContainsFunc(records, func(r *Record) bool {
			return r.Partition == a.Partition && r.Offset == a.Offset && r.Entity == a.Entity && r.Seq == a.Seq
		}) {
			v.violate("%s: the row at %s is of no record of the log", id, a.at())
		}
	}
}

// same compares amounts by their value.
func same(v *Verdict, what string, ours map[string]*apd.Decimal, theirs map[string]string) {
	for key, want := range ours {
		got, _, err := apd.NewFromString(theirs[key])
		if _, ok := theirs[key]; !ok || err != nil || got.Cmp(want) != 0 {
			v.violate("the %s %s is %s, expected %s", what, key, fmt.Sprintf("%q", theirs[key]), want.Text('f'))
		}
	}
	for key := range theirs {
		if ours[key] == nil {
			v.violate("the %s %s is %s, and the log knows nothing of it", what, key, theirs[key])
		}
	}
}
