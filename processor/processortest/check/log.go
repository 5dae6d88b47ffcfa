package check

import (
	"fmt"
	"slices"
)

// log is a history with its records found by position and identity.
type log struct {
	*History
	at       map[place]*Record
	byID     map[string][]*Record // good ones, in the order of the history
	position map[int32]Position
	dead     map[place][]DeadLetter
	effects  map[string][]Append
}

type place struct {
	partition int32
	offset    int64
}

func (p place) String() string { return fmt.Sprintf("%d@%d", p.partition, p.offset) }

func (r *Record) place() place { return place{r.Partition, r.Offset} }

func newLog(h *History) *log {
	l := &log{
		History: h, at: map[place]*Record{}, byID: map[string][]*Record{}, position: map[int32]Position{},
		dead: map[place][]DeadLetter{}, effects: map[string][]Append{},
	}
	for i := range h.Records {
		r := &h.Records[i]
		l.at[r.place()] = r
		if r.Poison == "" {
			l.byID[r.ID] = append(l.byID[r.ID], r)
		}
	}
	for _, p := range h.Positions {
		l.position[p.Partition] = p
	}
	for _, d := range h.DeadLetters {
		at := place{d.Partition, d.Offset}
		l.dead[at] = append(l.dead[at], d)
	}
	for _, a := range h.Appended {
		l.effects[a.ID] = append(l.effects[a.ID], a)
	}
	return l
}

// passed reports whether the partition has come beyond the record.
func (l *log) passed(r *Record) bool {
	p, ok := l.position[r.Partition]
	return ok && p.First <= r.Offset && r.Offset < p.Next
}

// skipped reports whether an operator has left the record out.
func (l *log) skipped(r *Record) bool {
	return slices.ContainsFunc(l.Changes, func(c Change) bool {
		return c.Partition == r.Partition && c.From <= r.Offset && r.Offset < c.To
	})
}

// chain follows the transactions and the changes of each partition, which the
// history has in their order.
func (l *log) chain(v *Verdict) {
	next := map[int32]int64{}
	for _, p := range l.Positions {
		next[p.Partition] = p.First
	}
	changes := map[int32][]Change{}
	for _, c := range l.Changes {
		changes[c.Partition] = append(changes[c.Partition], c)
	}
	for _, p := range l.Passes {
		v.Checked++
		for rest := changes[p.Partition]; p.From != next[p.Partition] && len(rest) > 0 && rest[0].From == next[p.Partition]; rest = changes[p.Partition] {
			next[p.Partition], changes[p.Partition] = rest[0].To, rest[1:]
		}
		if p.From != next[p.Partition] || p.To <= p.From {
			v.violate("partition %d: a transaction of %s in epoch %d passed [%d, %d), expected to begin at %d", p.Partition, p.Owner, p.Epoch, p.From, p.To, next[p.Partition])
		}
		next[p.Partition] = p.To
	}
	l.written(v)
	for _, p := range l.Positions {
		for _, c := range changes[p.Partition] {
			next[p.Partition] = c.To
		}
		if next[p.Partition] != p.Next {
			v.violate("partition %d: the chain ends at %d, the stored offset is %d", p.Partition, next[p.Partition], p.Next)
		}
	}
}

// written looks for effects of transactions that have not passed their record.
func (l *log) written(v *Verdict) {
	passes := map[place]Pass{}
	for _, p := range l.Passes {
		passes[place{p.Partition, p.Tx}] = p
	}
	for _, a := range l.Appended {
		v.Checked++
		p, ok := passes[place{a.Partition, a.Tx}]
		if !ok || a.Offset < p.From || a.Offset >= p.To {
			v.violate("%s: the effect of %s was written by a transaction that has not passed it", place{a.Partition, a.Offset}, a.ID)
		}
	}
}

// accounting compares the account of each partition with the log.
func (l *log) accounting(v *Verdict) {
	for _, p := range l.Positions {
		v.Checked++
		inLog, effects := int64(0), int64(0)
		for i := range l.Records {
			if r := &l.Records[i]; r.Partition == p.Partition && l.passed(r) && !l.skipped(r) {
				inLog++
			}
		}
		for _, a := range l.Appended {
			if a.Partition == p.Partition {
				effects++
			}
		}
		if p.Rewound == 0 && p.Records != inLog {
			v.violate("partition %d: the account has %d records, the log has %d between %d and %d", p.Partition, p.Records, inLog, p.First, p.Next)
		}
		if sum := effects + p.Producer + p.Redelivery + p.DeadLetters; sum != p.Records {
			v.violate("partition %d: %d effects + %d + %d duplicates + %d dead letters = %d, and %d records", p.Partition, effects, p.Producer, p.Redelivery, p.DeadLetters, sum, p.Records)
		}
	}
}

// deadLetters compares the dead letters with the poison in the log.
func (l *log) deadLetters(v *Verdict) {
	for i := range l.Records {
		r := &l.Records[i]
		if r.Poison == "" || !l.passed(r) || l.skipped(r) {
			continue
		}
		v.Checked++
		switch all := l.dead[r.place()]; {
		case len(all) != 1:
			v.violate("%s: a poison record (%s) is %d dead letters", r.place(), r.Poison, len(all))
		case all[0].Reason != r.Poison:
			v.violate("%s: set aside for %s, expected %s", r.place(), all[0].Reason, r.Poison)
		}
	}
	for _, s := range l.Samples {
		if s.Early > 0 {
			v.violate("at %s %d records had been set aside that were not passed", s.At.Format(clock), s.Early)
		}
	}
	for at := range l.dead {
		if r := l.at[at]; r == nil || r.Poison == "" {
			v.violate("%s: set aside for %s, and there is nothing wrong with it", at, l.dead[at][0].Reason)
		}
	}
}
