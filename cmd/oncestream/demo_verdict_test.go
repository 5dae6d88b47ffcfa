package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema/tables"
)

// kept is the verdict of a run that has kept the promise.
func kept(t *testing.T) *verdict {
	t.Helper()
	v := &verdict{tally: newTally(), stored: 9, storedDistinct: 9, counted: 9}
	v.tally.sent, v.tally.distinct = 10, 9
	v.tally.sum.SetInt64(12345)
	v.balances.SetInt64(12345)
	v.totals.Total.DuplicatesProducer = 1
	v.replay = processor.Report{Records: 10, Duplicates: 10}
	v.before.payments = tables.TableDigest{Rows: 9, Sum: "aa"}
	v.after = v.before
	return v
}

// A verdict holds only if every single check does: each way to break the promise
// is seen, and named in its line.
func TestVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		breaks func(*verdict)
		line   string
	}{
		"nothing":             {func(*verdict) {}, ""},
		"a lost payment":      {func(v *verdict) { v.stored, v.storedDistinct = 8, 8 }, "  stored"},
		"a doubled payment":   {func(v *verdict) { v.stored = 10 }, "  stored"},
		"lost and doubled":    {func(v *verdict) { v.storedDistinct = 8 }, "  stored"},
		"a missed duplicate":  {func(v *verdict) { v.totals.Total.DuplicatesProducer = 0 }, "duplicates found"},
		"a cent":              {func(v *verdict) { v.balances.SetInt64(12346) }, "sum of the balances"},
		"a count":             {func(v *verdict) { v.counted = 10 }, "payments in the balances"},
		"something new":       {func(v *verdict) { v.replay.Fresh, v.replay.Duplicates = 1, 9 }, "replay of the whole topic"},
		"a fault":             {func(v *verdict) { v.replay.Faults = 1 }, "replay of the whole topic"},
		"a replay of a part":  {func(v *verdict) { v.replay.Records, v.replay.Duplicates = 9, 9 }, "replay of the whole topic"},
		"an effect of replay": {func(v *verdict) { v.after.payments.Sum = "ab" }, "payments after the replay"},
		"a total of replay":   {func(v *verdict) { v.after.totals.Rows = 1 }, "customer_totals after the replay"},
	} {
		t.Run(name, func(t *testing.T) {
			v := kept(t)
			test.breaks(v)
			var out bytes.Buffer
			holds, err := v.write(&out)
			if err != nil || holds != (test.line == "") {
				t.Fatalf("holds: %v, %v\n%s", holds, err, out.String())
			}
			for line := range strings.Lines(out.String()) {
				if wrong, named := strings.Contains(line, "WRONG"), test.line != "" && strings.HasPrefix(line, test.line); wrong != named {
					t.Errorf("unexpected: %s", line)
				}
			}
		})
	}
}
