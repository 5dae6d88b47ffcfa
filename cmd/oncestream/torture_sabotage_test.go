//go:build torture

package main

import (
	"slices"
	"strings"
	"sync/atomic"
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
	perPartition = both(
		rewrites("$4, $5\nfrom unnest(", "$4, ($5 * 100 + $4)::smallint\nfrom unnest("),
		rewrites("payload_sum, processed_at, result\nfrom \"oncestream\".\"processed_message\"\nwhere handler = $2",
			"payload_sum, processed_at, result\nfrom \"oncestream\".\"processed_message\"\nwhere handler / 100 = $2"))
)

// setAsideApart has a dead letter written by a session of its own, whatever becomes
// of the transaction that sets it aside. Where the server has no dblink the run
// fails, and says so.
const setAsideApart = `
create extension dblink;
create function set_aside_apart() returns trigger language plpgsql as $$
begin
  if current_setting('application_name') = 'apart' then
    return new;
  end if;
  perform public.dblink_exec(
    format('host=127.0.0.1 port=%s dbname=%s user=%s application_name=apart', current_setting('port'), current_database(), current_user),
    format('insert into oncestream.dead_letter overriding system value select (%L::oncestream.dead_letter).* on conflict do nothing', new::text));
  return null;
end $$;
create trigger set_aside_apart before insert on oncestream.dead_letter for each row execute function set_aside_apart()`

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

// takenForAbort has a COMMIT that was done told to have failed.
var takenForAbort = everyNth(10, pgproxy.Message.Committed, pgproxy.Action{Instead: pgproxy.ErrorMessage("40001", "could not serialize access")})

// takenForCommit turns every tenth COMMIT into a ROLLBACK and its answer back: it
// is told to have been done, and was not.
func takenForCommit() pgproxy.Rule {
	commits := everyNth(10, pgproxy.Message.Commits, pgproxy.Action{SQL: "rollback"})
	return func(m pgproxy.Message) pgproxy.Action {
		if m.Tag == "ROLLBACK" {
			return pgproxy.Action{Tag: "COMMIT"}
		}
		return commits(m)
	}
}

// lateCommits holds every fifth COMMIT back for longer than the reader pauses
// between two looks.
var lateCommits = everyNth(5, pgproxy.Message.Commits, pgproxy.Action{Hold: 1500 * time.Millisecond})

// Proves that the checkers of the torture see what is broken, by workers whose
// statements are changed on the wire; and that what is harmless, because the
// compare of the offset covers for it, is harmless here too. The sabotages that
// are not here: c, f, g and h need a schedule of their own (processor,
// TestSabotage…), and j is broken in the model (offsets, TestProtocolSabotage).
// c is not seen here, as the successor has passed what a zombie has in hand long
// before that wakes up: then its keys are refused.
func TestTortureSabotage(t *testing.T) {
	for _, c := range []struct {
		name   string
		wire   pgproxy.Rule
		tables string
		faults string
		caught []string // by one of these; none: by nobody
	}{
		{"as it is", nil, "", "kill restore", nil},
		{"a: resumed from an offset that ran ahead", skipsAtClaim, "", "kill", []string{"I1", "I4"}},
		{"b: the advance without the old offset", withoutOffset, "", "restore", []string{"I1", "I4"}},
		{"d: COMMIT taken for an abort", takenForAbort, "", "kill", nil},
		{"d: COMMIT taken for a commit", takenForCommit(), "", "kill", nil},
		{"d and b: taken for an abort", both(takenForAbort, withoutOffset), "", "kill", []string{"I2", "I4", "I7"}},
		{"d and b: taken for a commit", both(takenForCommit(), withoutOffset), "", "kill", []string{"I1", "I4"}},
		{"e: the result of the key insert ignored", allFresh, "", "kill", []string{"I2"}},
		{"i: dead letters outside of the transaction", lateCommits, setAsideApart, "kill", []string{"I11"}},
		{"k: keys scoped by partition", perPartition, "", "kill", []string{"I2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var struck atomic.Int64
			o := torture.Options{For: 10 * time.Second, Limit: 20 * time.Second, Tables: c.tables, Faults: strings.Fields(c.faults)}
			if len(c.caught) > 0 {
				o.Limit = 5 * time.Second // what is broken may never be done
			}
			if c.wire != nil {
				o.Wire = counted(c.wire, &struck)
			}
			r := tortured(t, o)
			if c.wire != nil && struck.Load() == 0 {
				t.Error("nothing was changed on the wire")
			}
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
				t.Errorf("caught by %v, want one of %v", caught, c.caught)
			}
		})
	}
}

// counted counts what a rule has changed.
func counted(rule pgproxy.Rule, struck *atomic.Int64) pgproxy.Rule {
	return func(m pgproxy.Message) pgproxy.Action {
		a := rule(m)
		if a.SQL != "" || a.Tag != "" || a.Instead != nil || a.Hold > 0 {
			struck.Add(1)
		}
		return a
	}
}
