//go:build torture

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest/check"
	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
	"github.com/oncestream/oncestream/processor/processortest/torture"
)

// rewrites is a rule that changes the statements on their way to the server: the
// worker is the program as it is, and what arrives is that of a program without
// the mechanism.
func rewrites(oldnew ...string) pgproxy.Rule {
	r := strings.NewReplacer(oldnew...)
	return func(m pgproxy.Message) pgproxy.Action {
		if !m.ToServer || m.Kind != 'P' {
			return pgproxy.Pass
		}
		if sql := r.Replace(m.SQL); sql != m.SQL {
			return pgproxy.Action{SQL: sql}
		}
		return pgproxy.Pass
	}
}

// both asks the one and then the other.
func both(one, other pgproxy.Rule) pgproxy.Rule {
	return func(m pgproxy.Message) pgproxy.Action {
		if a := one(m); a.SQL != "" || a.Tag != "" || a.Instead != nil {
			return a
		}
		return other(m)
	}
}

// The parts of the ledger's statements that are taken away. A parameter that is
// used no more must still have a type.
var (
	withoutOffset = rewrites(" and epoch = $4 and next_offset = $5", " and epoch = $4 and $5::bigint is not null")
	skipsAtClaim  = rewrites("set epoch = o.epoch + 1, owner", "set epoch = o.epoch + 1, next_offset = o.next_offset + 40, owner")
	allFresh      = func(m pgproxy.Message) pgproxy.Action {
		if !m.ToServer || m.Kind != 'P' || !strings.Contains(m.SQL, "processed_message") || !strings.Contains(m.SQL, "returning key") {
			return pgproxy.Pass
		}
		return pgproxy.Action{SQL: "with inserted as (" + m.SQL + ") select e.key from unnest($1::uuid[]) as e (key)"}
	}
)

// everyNth strikes every n-th message that matches.
func everyNth(n int, is func(pgproxy.Message) bool, action pgproxy.Action) pgproxy.Rule {
	seen := make(chan int, 1)
	seen <- 0
	return func(m pgproxy.Message) pgproxy.Action {
		if !is(m) {
			return pgproxy.Pass
		}
		count := <-seen + 1
		seen <- count
		if count%n == 0 {
			return action
		}
		return pgproxy.Pass
	}
}

var (
	// A COMMIT that was done, and is told to have failed; and one that is told to
	// have been done, and was not.
	takenForAbort  = everyNth(20, pgproxy.Message.Committed, pgproxy.Action{Instead: pgproxy.ErrorMessage("40001", "could not serialize access")})
	takenForCommit = rollsBack()
)

// rollsBack turns every twentieth COMMIT into a ROLLBACK and its answer back.
func rollsBack() pgproxy.Rule {
	commits := everyNth(20, pgproxy.Message.Commits, pgproxy.Action{SQL: "rollback"})
	return func(m pgproxy.Message) pgproxy.Action {
		if m.Tag == "ROLLBACK" {
			return pgproxy.Action{Tag: "COMMIT"}
		}
		return commits(m)
	}
}

// Proves that the checkers of the torture see what is broken, by workers whose
// statements are changed on the wire; and that what is harmless, because the
// compare of the offset covers for it, is harmless here too. (The row count of the
// advance is not among them: a zombie that wakes up finds that its successor has
// passed everything, and the keys cover for it. The simulation and the fight of
// package offsets see it.)
func TestTortureSabotage(t *testing.T) {
	for _, c := range []struct {
		name   string
		wire   pgproxy.Rule
		faults []string
		caught []string // by one of these; none: by nobody
	}{
		{"as it is", nil, []string{"kill", "zombie", "restore"}, nil},
		{"a: resumed from an offset that ran ahead", skipsAtClaim, []string{"kill"}, []string{"I1", "I4"}},
		{"b: the advance without the old offset", withoutOffset, []string{"restore", "zombie"}, []string{"I1", "I4", "I6"}},
		{"d: COMMIT taken for an abort", takenForAbort, []string{"kill"}, nil},
		{"d: COMMIT taken for a commit", takenForCommit, []string{"kill"}, nil},
		{"d and b: taken for an abort", both(takenForAbort, withoutOffset), []string{"kill"}, []string{"I2", "I4", "I7"}},
		{"d and b: taken for a commit", both(takenForCommit, withoutOffset), []string{"kill"}, []string{"I1", "I4"}},
		{"e: the result of the key insert ignored", allFresh, []string{"kill"}, []string{"I2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := tortured(t, torture.Options{For: 15 * time.Second, Limit: 20 * time.Second, Wire: c.wire, Faults: c.faults})
			var caught []string
			for _, v := range check.Violated(r.Verdicts) {
				caught = append(caught, v.Invariant)
				t.Log(v)
			}
			t.Logf("caught by %v", caught)
			switch {
			case len(c.caught) == 0 && len(caught) > 0:
				t.Errorf("caught by %v, and it should be harmless", caught)
			case len(c.caught) > 0 && !slices.ContainsFunc(caught, func(name string) bool { return slices.Contains(c.caught, name) }):
				t.Errorf("caught by %v, want one of %v", fmt.Sprint(caught), c.caught)
			}
		})
	}
}
