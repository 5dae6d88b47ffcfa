package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// severalLogs is an honest history of one partition, which was handled in three
// logs: up to 5 of one that was cut at 3, up to 6 of what came instead, and 2 of
// the topic that was created again. Offset 4 is poison in both of the first two.
func severalLogs() *check.History {
	h := &check.History{
		Halts: []check.Halt{
			{Code: "log_truncated", At: 5, Stood: 5, Seen: "log_truncated"},
			{Code: "topic_recreated", At: 6, Stood: 6, Seen: "topic_recreated"},
		},
		Changes:  []check.Change{{From: 5, To: 3, Epoch: 2, Action: "rewind"}, {From: 6, To: 0, Epoch: 3, Action: "adopt"}},
		Passes:   []check.Pass{{From: 0, To: 5, Epoch: 1, Tx: "1"}, {From: 3, To: 6, Epoch: 2, Tx: "2"}, {From: 0, To: 2, Epoch: 3, Tx: "3"}},
		Balances: []check.Balance{{"a", "EUR", "-8"}, {"b", "EUR", "8"}},
		Counters: []check.Counter{{"e", 8, "8"}},
		DeadLetters: []check.DeadLetter{
			{Offset: 4, Reason: "decode"}, {Offset: 0, Reason: "check", Topic: 1},
		},
		Positions: []check.Position{{Next: 2, Epoch: 3, Records: 10, DeadLetters: 2, State: "open"}},
	}
	add := func(log, topic int, offset int64, poison string) {
		r := check.Record{
			Offset: offset, ID: fmt.Sprintf("%d@%d", log, offset), Entity: "e", From: "a", To: "b", Amount: "1", Currency: "EUR",
			Poison: poison, Log: log, Topic: topic,
		}
		h.Records = append(h.Records, r)
		if poison == "" && (log > 0 || offset < 5) {
			h.Appended = append(h.Appended, check.Append{ID: r.ID, Entity: "e", Offset: offset, At: int64(len(h.Appended)), Tx: h.Passes[log].Tx})
		}
	}
	for offset := range int64(8) { // 5 to 7 were cut before they were handled
		add(0, 0, offset, "")
	}
	for offset := int64(3); offset < 6; offset++ {
		add(1, 0, offset, map[int64]string{4: "decode"}[offset])
	}
	add(2, 1, 0, "check")
	add(2, 1, 1, "")
	return h
}

// Proves that a record belongs to its log: what was handled of a log that is no
// more must have its effects, what was not must not be missed, and the offsets
// that were given again are judged by themselves.
func TestSeveralLogs(t *testing.T) {
	h := severalLogs()
	for _, v := range check.Violated(check.Judge(h)) {
		t.Errorf("of an honest history: %s", v)
	}
	for _, c := range []struct {
		what, violates string
		change         func(*check.History)
	}{
		{"what was handled before the cut lacks its effect", "I1", func(h *check.History) { h.Appended = h.Appended[1:] }},
		{"the first after the cut lacks its effect", "I1", func(h *check.History) { h.Appended = append(h.Appended[:5:5], h.Appended[6:]...) }},
		{"the cut was passed over", "I12", func(h *check.History) { h.Halts[0].Seen = "" }},
		{"the poison of the new topic was swallowed", "I11", func(h *check.History) { h.DeadLetters = h.DeadLetters[:1] }},
		{"a record of the new topic was left out", "I8", func(h *check.History) { h.Positions[0].Next = 1; h.Run.Healed, h.Run.Drained = began, began }},
	} {
		h := severalLogs()
		c.change(h)
		var names []string
		for _, v := range check.Violated(check.Judge(h)) {
			names = append(names, v.Invariant)
		}
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+c.violates+" ") {
			t.Errorf("%s: violates %v, want %s among them", c.what, names, c.violates)
		}
	}
}

// Proves that a change which moved nothing, as where a topic was created again
// before anything of the former one was handled, is no link of the chain.
func TestChangeInPlace(t *testing.T) {
	h := severalLogs()
	h.Changes = append([]check.Change{{Epoch: 1, Action: "adopt"}}, h.Changes...)
	for _, v := range check.Violated(check.Judge(h)) {
		t.Error(v)
	}
}
