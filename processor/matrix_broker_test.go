//go:build broker

package processor_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/oncestream/oncestream/processor/processortest"
)

// Proves, for each way in which a group agrees on who reads what, that under
// load a member joins, one is killed without a word and one is stopped, and
// after that each message has had one effect, the account is exact, the lag is 0
// and no partition is without an owner (fault 24).
func TestGroupMatrix(t *testing.T) {
	t.Parallel()
	const static = "INSTANCE=%s-%d"
	for name, settings := range map[string][]string{
		"cooperative-sticky": {"INSTANCE=none"},
		"range":              {"INSTANCE=none", "BALANCER=range"},
		"roundrobin":         {"INSTANCE=none", "BALANCER=roundrobin"},
		"sticky":             {"INSTANCE=none", "BALANCER=sticky"},
		"static":             {static},
		"static range":       {static, "BALANCER=range"},
		"automatic":          {"INSTANCE=auto"},
		"consumer":           {"INSTANCE=none", "PROTOCOL=consumer"},
		"consumer range":     {"INSTANCE=none", "PROTOCOL=consumer", "BALANCER=range"},
		"consumer static":    {static, "PROTOCOL=consumer"},
		"consumer automatic": {"INSTANCE=auto", "PROTOCOL=consumer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 6)
			member := func(n int) *processortest.Process {
				mine := append([]string(nil), settings...)
				if mine[0] == static {
					mine[0] = fmt.Sprintf(static, "m", n)
				}
				return w.process(t, mine...)
			}
			first, second := member(1), member(2)
			w.ownedBy(first, second)
			s := streamTo(w, 6)
			third := member(3)
			w.ownedBy(first, second, third)
			first.Kill()
			w.ownedBy(second, third)
			wasted := stopped(t, second)
			w.ownedBy(third)
			total := s.end()
			w.waitFor(`select sum(next_offset) from consumer_offset`, strconv.Itoa(total))
			w.ownedBy(third)
			w.noLag(6)
			wasted += stopped(t, third)
			w.effects(total)
			w.exactly(total, 0)
			t.Logf("%d messages; %d batches begun in vain", total, wasted)
		})
	}
}

// ownedBy waits until all partitions are owned by these processes, and each of
// them owns one.
func (w *world) ownedBy(members ...*processortest.Process) {
	w.tb.Helper()
	pids := make([]string, len(members))
	for i, m := range members {
		pids[i] = strconv.Itoa(m.Pid())
	}
	w.waitUntil(`select (count(*) = count(*) filter (where split_part(owner, '/', 2) = any($1)) and
		count(distinct owner) = $2 and count(*) > 0)::text from consumer_offset`, pids, len(pids))
}

// noLag checks that the ledger has reached the end of each partition.
func (w *world) noLag(partitions int32) {
	w.tb.Helper()
	for p := range partitions {
		stored := w.db.Value(`select next_offset from consumer_offset where partition = $1`, p)
		if end := w.EndOffset(w.tb, w.topic, p); stored != strconv.FormatInt(end, 10) {
			w.tb.Errorf("partition %d is stored as far as %s and ends at %d", p, stored, end)
		}
	}
}
