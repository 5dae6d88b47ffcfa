package check

import (
	"fmt"
	"strings"
)

// Verdict is what came of one invariant.
type Verdict struct {
	// Invariant is its name, "I2", and Says what it demands.
	Invariant, Says string
	// Checked is how many things were looked at: a verdict on nothing is none.
	Checked int
	// Violations are the first few, and Count how many there are.
	Violations []string
	Count      int
}

// Holds reports whether nothing violates the invariant.
func (v Verdict) Holds() bool { return v.Count == 0 }

// String is the verdict in a line, and a line for each violation.
func (v Verdict) String() string {
	switch {
	case v.Checked == 0:
		return fmt.Sprintf("%-4s not checked: there was nothing to look at", v.Invariant)
	case v.Holds():
		return fmt.Sprintf("%-4s held: %s (%d checked)", v.Invariant, v.Says, v.Checked)
	}
	text := fmt.Sprintf("%-4s VIOLATED %d times: %s", v.Invariant, v.Count, v.Says)
	return text + "\n       " + strings.Join(v.Violations, "\n       ")
}

// maxViolations bounds what a verdict shows.
const maxViolations = 5

// violate notes a violation.
func (v *Verdict) violate(format string, args ...any) {
	if v.Count++; v.Count <= maxViolations {
		v.Violations = append(v.Violations, fmt.Sprintf(format, args...))
	}
}

// Judge checks all invariants, each on its own.
func Judge(h *History) []Verdict {
	l := newLog(h)
	all := []struct {
		name, says string
		check      func(*Verdict)
	}{
		{"I1", "each record that was passed has its effect or its dead letter", l.noLoss},
		{"I2", "no identity has two effects", l.noDouble},
		{"I3", "the balances of each currency add up to 0", l.conservation},
		{"I4", "the transactions of each partition form one chain, and effects are theirs", l.chain},
		{"I5", "the effects of an entity come in the order of the log", l.order},
		{"I6", "the tables are what a fold over the log gives", l.oracle},
		{"I7", "records = effects + duplicates + dead letters", l.accounting},
		{"I8", "after the faults everything is handled in time", l.liveness},
		{"I10", "each COMMIT without an answer was found out about", l.commits},
		{"I11", "each poison record is one dead letter with its reason", l.deadLetters},
		{"I12", "what must halt has halted, and nothing more was written", l.halts},
	}
	verdicts := make([]Verdict, len(all))
	for i, c := range all {
		verdicts[i] = Verdict{Invariant: c.name, Says: c.says}
		c.check(&verdicts[i])
	}
	return verdicts
}

// Violated returns the verdicts that do not hold.
func Violated(all []Verdict) (bad []Verdict) {
	for _, v := range all {
		if !v.Holds() {
			bad = append(bad, v)
		}
	}
	return bad
}
