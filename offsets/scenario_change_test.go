package offsets_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/offsets"
)

// changes are the partitions with their targets, 0=100, for the action that is
// the verb; the reason is the input.
func (a arguments) changes() []offsets.Change {
	var all []offsets.Change
	for _, p := range a.assigned() {
		c := offsets.Change{Partition: p.Partition, Action: offsets.Action(a.verb()), To: p.Start, BeyondFloor: a.has("beyond_floor")}
		if c.Action == offsets.Adopt || a.has("topic_id") || a.has("cluster") {
			c.Identity = a.identity()
		}
		all = append(all, c)
	}
	return all
}

func (a arguments) note() offsets.Note {
	return offsets.Note{By: a.text("by", "ada"), Reason: strings.TrimSpace(a.d.Input)}
}

// change applies, or with "plan" only says what it would do.
func (w *worker) change(ctx context.Context, a arguments) func() string {
	if a.has("plan") {
		plan, err := w.ledger.Plan(ctx, w.aside.conn, a.changes())
		return showPlan(plan, err)
	}
	wait, err := time.ParseDuration(a.text("lock_timeout", "0s"))
	if err != nil {
		return answer(err, "")
	}
	plan, err := w.ledger.Apply(ctx, w.aside.conn, a.changes(), a.note(), wait)
	return showPlan(plan, err)
}

func showPlan(plan []offsets.Planned, err error) func() string {
	return func() string {
		var b strings.Builder
		for _, p := range plan {
			fmt.Fprintf(&b, "partition %d: %s %d to %d, %d again, %d left out, floor %d, epoch %d, owner %q, %s %q\n",
				p.Partition, p.Action, p.Next, p.To, p.Again, p.LeftOut, p.Floor, p.Epoch, p.Owner, p.State, p.Reason)
			if p.Refusal != nil {
				fmt.Fprintf(&b, "refused: %v\n", p.Refusal)
			}
		}
		return b.String() + answer(err, "")()
	}
}

func (w *worker) enter(ctx context.Context, a arguments) func() string {
	return answer(w.ledger.EnterEnvironment(ctx, w.aside.conn, a.text("label", ""), w.name), "ok\n")
}

func (w *worker) check(ctx context.Context, a arguments) func() string {
	return answer(w.ledger.CheckEnvironment(ctx, w.aside.conn, a.text("label", "")), "ok\n")
}

func (w *worker) relabel(ctx context.Context, a arguments) func() string {
	before, err := w.ledger.AdoptEnvironment(ctx, w.aside.conn, a.text("label", ""), a.note())
	return answer(err, "before: %q\n", before)
}

// history shows what was written down, without what differs from run to run.
func (s *scenario) history(t *testing.T) string {
	t.Helper()
	ledger := s.ledger(t, "orders", "shop")
	changes, err := ledger.Changes(t.Context(), s.db.Pool, 100)
	if err != nil {
		t.Fatal(err)
	}
	labels, err := ledger.EnvironmentChanges(t.Context(), s.db.Pool, 100)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s %d: %d to %d, epoch %d from then on, by %s: %s\n", c.Action, c.Partition, c.From, c.To, c.Epoch, c.By, c.Reason)
		if c.Action == offsets.Adopt {
			fmt.Fprintf(&b, "  from %v to %v\n", c.Left, c.Taken)
		}
		if since := time.Since(c.At); since < 0 || since > time.Hour {
			t.Errorf("change %d was made %v ago", c.ID, since)
		}
	}
	left, err := ledger.LeftOut(t.Context(), s.db.Pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range left {
		fmt.Fprintf(&b, "left out of %d: [%d, %d)\n", l.Partition, l.From, l.To)
	}
	for _, c := range labels {
		fmt.Fprintf(&b, "%q to %q, by %s: %s\n", c.From, c.To, c.By, c.Reason)
	}
	return b.String()
}
