package offsets_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/datadriven"

	"github.com/oncestream/oncestream/offsets"
)

// arguments are a command's: the verb, bare numbers (partitions), name=value
// pairs, and entries as lines of input.
type arguments struct {
	t *testing.T
	d *datadriven.TestData
}

func (a arguments) verb() string { return a.d.CmdArgs[0].Key }

func (a arguments) has(name string) bool { return a.d.HasArg(name) }

func (a arguments) text(name, unset string) string {
	a.d.MaybeScanArgs(a.t, name, &unset)
	return unset
}

func (a arguments) number(name string, unset int64) int64 {
	a.d.MaybeScanArgs(a.t, name, &unset)
	return unset
}

// identity is the topic as the worker sees it: cluster "c" and topic id 1.
func (a arguments) identity() offsets.Identity {
	return offsets.Identity{ClusterID: a.text("cluster", "c"), TopicID: [16]byte{15: byte(a.number("topic_id", 1))}}
}

// assigned is the partitions, 0 or 0=100 with a start.
func (a arguments) assigned() []offsets.Assigned {
	var all []offsets.Assigned
	for _, arg := range a.d.CmdArgs[1:] {
		p, err := strconv.ParseInt(arg.Key, 10, 32)
		if err != nil {
			continue
		}
		start := int64(0)
		if len(arg.Vals) == 1 {
			arg.Scan(a.t, 0, &start)
		}
		all = append(all, offsets.Assigned{Partition: int32(p), Start: start})
	}
	return all
}

func (a arguments) partition() int32 {
	all := a.assigned()
	if len(all) != 1 {
		a.d.Fatalf(a.t, "%s needs one partition", a.verb())
	}
	return all[0].Partition
}

func (a arguments) position() offsets.Position {
	to := offsets.Position{
		Next: a.number("to", 0), LeaderEpoch: int32(a.number("leader", -1)), Records: a.number("records", int64(len(a.entries()))),
	}
	if a.has("time") {
		to.Time = time.UnixMilli(a.number("time", 0))
	}
	return to
}

// entries reads lines of the form "0@10 key payload".
func (a arguments) entries() []offsets.Entry {
	var all []offsets.Entry
	for line := range strings.Lines(a.d.Input) {
		var e offsets.Entry
		var key, payload string
		if _, err := fmt.Sscanf(line, "%d@%d %s %s", &e.Partition, &e.Offset, &key, &payload); err != nil {
			a.d.Fatalf(a.t, "%q: %v", line, err)
		}
		e.Key, e.PayloadSum = keyOf(key), int64(xxhash.Sum64String(payload))
		all = append(all, e)
	}
	return slices.Clip(all)
}

// answer shows a result, or the error.
func answer(err error, format string, args ...any) func() string {
	return func() string {
		switch {
		case errors.Is(err, offsets.ErrFenced):
			return "fenced: " + err.Error() + "\n"
		case errors.Is(err, offsets.ErrWentBack):
			return "went back: " + err.Error() + "\n"
		case err != nil:
			return "error: " + err.Error() + "\n"
		}
		return fmt.Sprintf(format, args...)
	}
}

func showClaim(c offsets.Claim) string {
	return fmt.Sprintf("partition %d: epoch %d, next %d\n", c.Partition, c.Epoch, c.Next)
}

func showAdmission(e offsets.Entry, a offsets.Admission) string {
	at := fmt.Sprintf("%d@%d %s: ", e.Partition, e.Offset, keyName(e.Key))
	first := fmt.Sprintf("%d@%d, seen before %t, result %q\n", a.First.Partition, a.First.Offset, !a.ProcessedAt.IsZero(), a.Result)
	switch a.Outcome {
	case offsets.Fresh:
		return at + "fresh\n"
	case offsets.Conflict:
		return at + "conflict with " + first
	default:
		return at + "duplicate by " + string(a.Cause) + " of " + first
	}
}
