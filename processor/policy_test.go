package processor

import (
	"errors"
	"testing"
)

// Proves when the rate of dead letters halts: only above the share, only over a
// whole window, and only by the records of that window.
func TestDeadLetterRate(t *testing.T) {
	r := rate{limit: 0.1, window: 100}
	pass := func(records, dead int64) bool {
		err := r.check(passed{records, dead})
		var halt *haltError
		if err != nil && (!errors.As(err, &halt) || halt.code != "dead_letter_rate") {
			t.Fatalf("the check answers %v", err)
		}
		if err == nil {
			r.add(passed{records, dead})
		}
		return err == nil
	}
	for i, step := range []struct {
		records, dead int64
		want          bool
	}{
		{50, 50, true}, // less than a window is not judged
		{50, 0, true},  // nothing of this batch dies
		{400, 0, true},
		{100, 50, true}, // exactly the share; the first batches are forgotten
		{10, 1, false},  // above it
		{100, 0, true},
		{20, 13, false}, // 13 of 120
		{30, 13, true},  // 13 of 130
	} {
		if got := pass(step.records, step.dead); got != step.want {
			t.Errorf("step %d, %d of %d: passed %t, want %t (%+v)", i, step.dead, step.records, got, step.want, r.sum)
		}
	}
}
