package check

// liveness looks at how long it took after everything had healed, and that no
// partition is left behind.
func (l *log) liveness(v *Verdict) {
	if l.Run.Healed.IsZero() {
		return
	}
	v.Checked++
	switch {
	case l.Run.Drained.IsZero():
		v.violate("not everything was handled within %v after the last fault", l.Run.Limit)
	case l.Run.Drained.Sub(l.Run.Healed) > l.Run.Limit:
		v.violate("it took %v after the last fault, %v is the limit", l.Run.Drained.Sub(l.Run.Healed), l.Run.Limit)
	}
	for _, e := range l.Exits {
		v.Checked++
		if !e.Awaited {
			v.violate("%s ended by itself at %s, exit code %d", e.Worker, e.At.Format(clock), e.Code)
		}
	}
	for _, p := range l.Positions {
		v.Checked++
		if p.State == "halted" {
			v.violate("partition %d is halted at %d: %s", p.Partition, p.Next, p.Reason)
		}
	}
	if v.Holds() {
		for i := range l.Records {
			if r := &l.Records[i]; !l.passed(r) && !l.gone(r) {
				v.violate("%s is in the log and was not passed", r.place())
			}
		}
	}
}

// commits looks for COMMITs that nobody found out about.
func (l *log) commits(v *Verdict) {
	for _, c := range l.Commits {
		v.Checked++
		if c.Outcome == "" && !c.Ended {
			v.violate("%s: a COMMIT at %s had no answer and was not resolved", c.Worker, c.At.Format(clock))
		}
	}
}

// halts compares the halts that were due with those that were seen.
func (l *log) halts(v *Verdict) {
	for _, h := range l.Halts {
		v.Checked++
		switch {
		case h.Seen != h.Code:
			v.violate("partition %d: halted for %q, expected %q", h.Partition, h.Seen, h.Code)
		case h.Stood != h.At:
			v.violate("partition %d: halted for %s at %d, expected %d: something was written", h.Partition, h.Code, h.Stood, h.At)
		}
	}
}
