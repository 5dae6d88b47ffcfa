package torture

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// Proves that a seed decides what is sent, that the workload has what it promises
// (repeats within and across partitions, every sort of poison), and that what is
// read back from the log is what was sent.
func TestWorkload(t *testing.T) {
	const n = 20_000
	a, b, other := newWorkload(7, 6), newWorkload(7, 6), newWorkload(8, 6)
	places, repeats, moved, differs := map[string]int32{}, 0, 0, false
	reasons, poison := map[string]int{}, map[string]string{}
	for range n {
		r, payload := a.next()
		again, payloadAgain := b.next()
		if diff := cmp.Diff(r, again); diff != "" || string(payload) != string(payloadAgain) {
			t.Fatalf("the same seed makes another record: %s", diff)
		}
		if _, p := other.next(); string(p) != string(payload) {
			differs = true
		}
		if r.Poison != "" {
			reasons[r.Poison]++
			poison[string(payload)] = r.Poison
			continue
		}
		if at, ok := places[r.ID]; ok {
			repeats++
			if at != r.Partition {
				moved++
			}
		}
		places[r.ID] = r.Partition
		back := parse(payload, poison)
		back.Partition = r.Partition
		if diff := cmp.Diff(r, back); diff != "" {
			t.Fatalf("read back as another record: %s", diff)
		}
	}
	if !differs {
		t.Error("another seed makes the same records")
	}
	if repeats < n/30 || moved < n/100 {
		t.Errorf("%d of %d are repeats, %d by another partition", repeats, n, moved)
	}
	for _, reason := range []string{"decode", "key_missing", "value_range", "value_type", "not_null", "check"} {
		if reasons[reason] == 0 {
			t.Errorf("none is poison by %s", reason)
		}
	}
}

// Proves that a run which makes no sense is refused with all that is wrong, and
// that the faults have names and rows of their own.
func TestOptions(t *testing.T) {
	_, err := Run(context.Background(), Options{Program: []string{"x"}, Workers: -1, Broker: "rabbit", Faults: []string{"flood"}})
	for _, want := range []string{"workers", "rabbit", `no fault "flood"`, "kill-at"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	names := map[string]bool{}
	for _, f := range Faults() {
		if f.Name == "" || f.What == "" || f.Row == 0 || (f.strike == nil) != (f.Why != "") || names[f.Name] {
			t.Errorf("%+v is no fault of its own", f)
		}
		names[f.Name] = true
	}
	_, left := Options{Broker: "kfake", Faults: []string{"kill", "broker-kill"}}.chosen()
	if left["broker-kill"] == "" || left["storm"] == "" || left["kill"] != "" {
		t.Errorf("left out %v", left)
	}
}

// Proves that a fault which never struck is told from one that did.
func TestMissed(t *testing.T) {
	r := Result{History: &check.History{Faults: []check.Fault{{Kind: "kill"}, {Kind: "kill", Struck: true}, {Kind: "storm"}}}}
	if got := r.Missed(); len(got) != 1 || got[0] != "storm" {
		t.Errorf("missed %v", got)
	}
}
