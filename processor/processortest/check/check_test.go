package check_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// honest is a run of two partitions in which all went well: 40 transfers, of
// which two came twice and one is poison, a rewind, a lost COMMIT, a halt.
func honest() *check.History {
	h := &check.History{Run: check.Run{Seed: 1, Began: began, Healed: began, Drained: began.Add(time.Second), Limit: time.Minute}}
	add := func(p int32, offset int64, n int) {
		h.Records = append(h.Records, check.Record{
			Partition: p, Offset: offset, ID: fmt.Sprint("id", n), Entity: fmt.Sprint("e", p), Seq: int64(n),
			From: "a", To: "b", Amount: "0.10", Currency: "EUR",
		})
	}
	for n := range 20 {
		add(0, int64(n), n)
	}
	for n := range 19 {
		add(1, int64(n), 20+n)
	}
	add(1, 19, 3) // the producer again, by another partition
	h.Records[39].Entity, h.Records[39].Seq = "e0", 3
	h.Records[7].Poison = "decode"
	h.Passes = []check.Pass{
		{Partition: 0, From: 0, To: 12, Epoch: 1, Tx: "700"},
		{Partition: 1, From: 0, To: 20, Epoch: 1, Tx: "701"},
		{Partition: 0, From: 10, To: 20, Epoch: 2, Tx: "702"},
	}
	h.Changes = []check.Change{{Partition: 0, From: 12, To: 10, Epoch: 2, Action: "rewind"}}
	at := int64(0)
	for _, r := range h.Records[:39] {
		if at++; r.Poison == "" {
			writer := h.Passes[r.Partition]
			if r.Offset >= writer.To {
				writer = h.Passes[2]
			}
			h.Appended = append(h.Appended, check.Append{ID: r.ID, Entity: r.Entity, Seq: r.Seq, Partition: r.Partition, Offset: r.Offset, At: at, Tx: writer.Tx})
		}
	}
	h.Balances = []check.Balance{{"a", "EUR", "-3.80"}, {"b", "EUR", "3.8"}}
	h.Counters = []check.Counter{{"e0", 19, "1.90"}, {"e1", 19, "1.9"}}
	h.DeadLetters = []check.DeadLetter{{Offset: 7, Reason: "decode"}}
	h.Positions = []check.Position{
		{Partition: 0, Next: 20, Epoch: 2, Records: 22, Redelivery: 2, DeadLetters: 1, Rewound: 2, State: "open"},
		{Partition: 1, Next: 20, Epoch: 1, Records: 20, Producer: 1, State: "open"},
	}
	h.Faults = []check.Fault{{Row: 1, Kind: "kill", At: began, Struck: true}}
	h.Commits = []check.Commit{{Worker: "w1", At: began, Outcome: "committed"}, {Worker: "w2", At: began, Ended: true}}
	h.Halts = []check.Halt{{Partition: 1, Code: "log_truncated", At: 5, Stood: 5, Seen: "log_truncated"}}
	h.Exits = []check.Exit{{Worker: "w2", Life: 1, At: began, Code: -1, Awaited: true}}
	h.Samples = []check.Sample{{At: began, Sum: "0.00"}}
	return h
}

// Proves that nothing is found in a run in which all went well, and that each
// invariant has looked at something.
func TestHonest(t *testing.T) {
	for _, v := range check.Judge(honest()) {
		if !v.Holds() || v.Checked == 0 {
			t.Error(v)
		}
	}
}

// Proves that each invariant can be violated: every way in which the history is
// tampered with is found by the invariants that it concerns, and by no other.
func TestTampered(t *testing.T) {
	for _, c := range []struct {
		what   string
		tamper func(*check.History)
		finds  string
	}{
		{"a row is missing", func(h *check.History) { h.Appended = h.Appended[1:] }, "I1 I7"},
		{"a row is there twice", func(h *check.History) { h.Appended = append(h.Appended, h.Appended[0]) }, "I2 I5 I7"},
		{"a row was there twice for a while", func(h *check.History) { h.Samples[0].Doubles = 1 }, "I2"},
		{"a cent was made", func(h *check.History) { h.Balances[0].Amount = "-3.79" }, "I3 I6"},
		{"a cent was made for a while", func(h *check.History) { h.Samples[0].Sum = "0.01" }, "I3"},
		{"money moved that nobody sent", func(h *check.History) { h.Balances[0].Amount, h.Balances[1].Amount = "-4", "4" }, "I6"},
		{"an account that nobody knows", func(h *check.History) { h.Balances = append(h.Balances, check.Balance{"c", "EUR", "0"}) }, "I6"},
		{"a transaction is missing", func(h *check.History) { h.Passes = h.Passes[1:] }, "I4"},
		{"a row is of a transaction that passed nothing", func(h *check.History) { h.Appended[0].Tx = "699" }, "I4"},
		{"a row is of a transaction that passed other offsets", func(h *check.History) { h.Appended[0].Tx = "702" }, "I4"},
		{"a row is of another partition's transaction", func(h *check.History) { h.Appended[0].Tx = "701" }, "I4"},
		{"a transaction passed twice", func(h *check.History) { h.Passes[2].Tx = "701" }, "I4"},
		{"two owners passed the same", func(h *check.History) { h.Passes = append(h.Passes, h.Passes[1]) }, "I4"},
		{"the offset fell by itself", func(h *check.History) { h.Changes = nil }, "I4"},
		{"the offset is ahead of the chain", func(h *check.History) { h.Positions[1].Next++ }, "I4"},
		{"two rows changed places", func(h *check.History) { h.Appended[1].At, h.Appended[2].At = h.Appended[2].At, h.Appended[1].At }, "I5"},
		{"a row is of another position", func(h *check.History) { h.Appended[18].Offset = 90 }, "I4 I6"},
		{"a counter counted twice", func(h *check.History) { h.Counters[0].N++ }, "I6"},
		{"a total is short", func(h *check.History) { h.Counters[0].Total = "1.8" }, "I6"},
		{"a duplicate was not counted", func(h *check.History) { h.Positions[1].Producer = 0 }, "I7"},
		{"a record was not counted", func(h *check.History) { h.Positions[1].Records, h.Positions[1].Producer = 19, 0 }, "I7"},
		{"it never ended", func(h *check.History) { h.Run.Drained = time.Time{} }, "I8"},
		{"it took too long", func(h *check.History) { h.Run.Limit = time.Millisecond }, "I8"},
		{"a partition is halted", func(h *check.History) { h.Positions[0].State = "halted" }, "I8"},
		{"a record came later", func(h *check.History) {
			h.Records = append(h.Records, check.Record{Partition: 1, Offset: 20, ID: "late", Amount: "1"})
		}, "I8"},
		{"a worker ended by itself", func(h *check.History) { h.Exits[0].Awaited = false }, "I8"},
		{"nobody asked what became of a COMMIT", func(h *check.History) { h.Commits[0].Outcome = "" }, "I10"},
		{"a poison record was swallowed", func(h *check.History) { h.DeadLetters = nil }, "I1 I11"},
		{"a poison record is there twice", func(h *check.History) { h.DeadLetters = append(h.DeadLetters, h.DeadLetters[0]) }, "I11"},
		{"a dead letter has another reason", func(h *check.History) { h.DeadLetters[0].Reason = "check" }, "I11"},
		{"a poison record was set aside before its time", func(h *check.History) { h.Samples[0].Early = 1 }, "I11"},
		{"a good record was set aside", func(h *check.History) {
			h.DeadLetters = append(h.DeadLetters, check.DeadLetter{Offset: 1, Reason: "check"})
		}, "I11"},
		{"it halted for something else", func(h *check.History) { h.Halts[0].Seen = "" }, "I12"},
		{"it went on after the halt", func(h *check.History) { h.Halts[0].Stood = 6 }, "I12"},
	} {
		t.Run(c.what, func(t *testing.T) {
			h := honest()
			c.tamper(h)
			var found []string
			for _, v := range check.Violated(check.Judge(h)) {
				found = append(found, v.Invariant)
				if len(v.Violations) == 0 || !strings.Contains(v.String(), v.Violations[0]) {
					t.Errorf("%s does not say what is wrong", v)
				}
			}
			if got := strings.Join(found, " "); got != c.finds {
				t.Errorf("found by %q, want %q", got, c.finds)
			}
		})
	}
}

// Proves that an operator's skip is no loss, and that the records which it left
// out are told from those that were lost.
func TestSkip(t *testing.T) {
	h := honest()
	h.Balances[0].Amount, h.Balances[1].Amount = "-3.3", "3.3"
	h.Counters[0] = check.Counter{Entity: "e0", N: 14, Total: "1.4"}
	// The records 15 to 19 of partition 0 were skipped, and have nothing.
	h.Passes[2].To = 15
	h.Changes = append(h.Changes, check.Change{Partition: 0, From: 15, To: 20, Epoch: 3, Action: "skip"})
	h.Appended = slices.DeleteFunc(h.Appended, func(a check.Append) bool { return a.Partition == 0 && a.Offset >= 15 })
	h.Positions[0].Records, h.Positions[0].Skipped = 17, 5
	if bad := check.Violated(check.Judge(h)); len(bad) > 0 {
		t.Error(bad)
	}
	h.Appended = slices.DeleteFunc(h.Appended, func(a check.Append) bool { return a.Partition == 0 && a.Offset == 14 })
	if bad := check.Violated(check.Judge(h)); len(bad) == 0 || bad[0].Invariant != "I1" {
		t.Errorf("found %v, want the record that was not skipped", bad)
	}
}

// Proves that a history file holds all of the history, and that a line that is
// not understood is not passed over.
func TestLines(t *testing.T) {
	var file bytes.Buffer
	h := honest()
	if err := h.Write(&file); err != nil {
		t.Fatal(err)
	}
	again, err := check.Read(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h, again); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", "{", `{"kind":"gossip","is":{}}`, `{"kind":"record","is":[]}`} {
		if _, err := check.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read as a history", text)
		}
	}
}
