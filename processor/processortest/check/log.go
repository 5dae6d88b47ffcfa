package check

import (
	"fmt"
	"slices"
)

// log is a history with its records found by position and identity.
type log struct {
	*History
	at       map[place][]*Record  // one for each log that has it
	byID     map[string][]*Record // good ones, in the order of the history
	position map[int32]Position
	dead     map[place][]DeadLetter
	effects  map[string][]Append
	left     map[int32][]int64 // where a partition's logs were left, but for the last one
	skips    []skip
}

// place is a position in a topic of the name.
type place struct {
	partition int32
	offset    int64
	topic     int
}

func (p place) String() string { return fmt.Sprintf("%d@%d", p.partition, p.offset) }

func (r *Record) place() place { return place{r.Partition, r.Offset, r.Topic} }

// skip is what an operator has left out of a log.
type skip struct {
	partition int32
	log       int
	from, to  int64
}

func newLog(h *History) *log {
	l := &log{
		History: h, at: map[place][]*Record{}, left: map[int32][]int64{}, byID: map[string][]*Record{}, position: map[int32]Position{},
		dead: map[place][]DeadLetter{}, effects: map[string][]Append{},
	}
	for i := range h.Records {
		r := &h.Records[i]
		l.at[r.place()] = append(l.at[r.place()], r)
		if r.Poison == "" {
			l.byID[r.ID] = append(l.byID[r.ID], r)
		}
	}
	for _, p := range h.Positions {
		l.position[p.Partition] = p
	}
	for _, d := range h.DeadLetters {
		at := place{d.Partition, d.Offset, d.Topic}
		l.dead[at] = append(l.dead[at], d)
	}
	for _, a := range h.Appended {
		l.effects[a.ID] = append(l.effects[a.ID], a)
	}
	for _, c := range h.Changes {
		switch {
		case c.Action == "skip":
			l.skips = append(l.skips, skip{c.Partition, len(l.left[c.Partition]), c.From, c.To})
		case l.leaves(c):
			l.left[c.Partition] = append(l.left[c.Partition], c.From)
		}
	}
	return l
}

// leaves reports whether a change has left the partition's log for another one. To
// read the same records again does not: only what has resolved the halt for a log
// that is not the one which was read.
func (l *log) leaves(c Change) bool {
	return slices.ContainsFunc(l.Halts, func(h Halt) bool {
		return h.Partition == c.Partition && h.Stood == c.From && slices.Contains([]string{"topic_recreated", "log_truncated", "beyond_end"}, h.Seen)
	})
}

// end is how far the record's log was handled: to where the partition stands, or
// stood when the log was left for another one.
func (l *log) end(r *Record) int64 {
	if left := l.left[r.Partition]; r.Log < len(left) {
		return left[r.Log]
	}
	return l.position[r.Partition].Next
}

// passed reports whether the partition has come beyond the record.
func (l *log) passed(r *Record) bool {
	p, ok := l.position[r.Partition]
	return ok && p.First <= r.Offset && r.Offset < l.end(r)
}

// gone reports whether the record is in no log any more, and was never passed.
func (l *log) gone(r *Record) bool { return r.Log < len(l.left[r.Partition]) && !l.passed(r) }

// skipped reports whether an operator has left the record out.
func (l *log) skipped(r *Record) bool {
	return slices.ContainsFunc(l.skips, func(s skip) bool {
		return s.partition == r.Partition && s.log == r.Log && s.from <= r.Offset && r.Offset < s.to
	})
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
		case all[0].Reason != l.reason(r.place()):
			v.violate("%s: set aside for %s, expected %s", r.place(), all[0].Reason, l.reason(r.place()))
		}
	}
	for at := range l.dead {
		if l.reason(at) == "" {
			v.violate("%s: set aside for %s, and there is nothing wrong with it", at, l.dead[at][0].Reason)
		}
	}
	for _, s := range l.Samples {
		v.Checked++
		if s.Early > 0 {
			v.violate("at %s %d records were set aside and not passed: not by the transaction that passes them", s.At.Format(clock), s.Early)
		}
	}
}

// reason is why the record at a place must be a dead letter, empty where there is
// nothing wrong with it. Where a log was cut and has another record there, the
// last one that was passed counts.
func (l *log) reason(at place) (reason string) {
	for _, r := range l.at[at] {
		if r.Poison != "" && l.passed(r) {
			reason = r.Poison
		}
	}
	return reason
}
