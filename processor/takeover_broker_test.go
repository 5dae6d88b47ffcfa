//go:build broker

package processor_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest"
)

// usual are the settings of a worker that has all defaults.
var usual = []string{"SESSION=", "IDLE=", "LOCK=", "TRANSACTION=", "DRAIN=", "RETRY=", "RETRY_MAX=", "BATCH="}

// Proves how soon others, or the same process again, write the first new rows of
// the partitions of a process that has gone, with default settings of ours and of
// the broker. It is the one place where a test asks for a time: to be this quick
// is what the defaults are for.
func TestTakeOver(t *testing.T) {
	broker := processortest.Broker(t, processortest.BrokerOptions{Properties: map[string]string{
		"group.initial.rebalance.delay.ms": "3000",
		"group.min.session.timeout.ms":     "6000",
		// The consumer protocol's.
		"group.consumer.session.timeout.ms":        "45000",
		"group.consumer.min.session.timeout.ms":    "45000",
		"group.consumer.heartbeat.interval.ms":     "5000",
		"group.consumer.min.heartbeat.interval.ms": "5000",
	}})
	again := func(more ...string) func(w *world, victim *processortest.Process) time.Time {
		return func(w *world, victim *processortest.Process) time.Time {
			victim.Kill()
			waitLine(w.tb, w.process(w.tb, append(more, usual...)...), `^STARTED$`)
			return time.Now()
		}
	}
	for _, tt := range []struct {
		name     string
		protocol string
		limit    time.Duration
		// gone lets the victim go and returns since when the time counts.
		gone func(w *world, victim *processortest.Process) time.Time
	}{
		{"killed and started again", "classic", 5 * time.Second, again()},
		{"killed and started again by the consumer protocol", "consumer", 5 * time.Second, again("PROTOCOL=consumer")},
		{"killed while others run", "classic", 12 * time.Second, func(_ *world, victim *processortest.Process) time.Time {
			victim.Kill()
			return time.Now()
		}},
		{"stopped while others run", "classic", time.Second, func(w *world, victim *processortest.Process) time.Time {
			began := time.Now()
			terminated(w.tb, victim) // what it writes until then is its own
			return began
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorldOn(t, broker.Client, 6)
			settings := append([]string{"PROTOCOL=" + tt.protocol}, usual...)
			victim, other := w.process(t, settings...), w.process(t, settings...)
			w.ownedBy(victim, other)
			s := streamTo(w, 6)
			left := w.partitionsOf(victim)
			w.moves(left, 0)
			began := tt.gone(w, victim)
			first, all := w.moves(left, w.lastOf(left))
			t.Logf("%s: the first new row after %.2f s, each of the partitions after %.2f s", tt.name, first.Sub(began).Seconds(), all.Sub(began).Seconds())
			if took := first.Sub(began); took > tt.limit {
				t.Errorf("the first new row came after %v, later than %v", took, tt.limit)
			}
			total := s.end()
			w.waitFor(`select sum(next_offset) from consumer_offset`, strconv.Itoa(total))
			w.effects(total)
			w.exactly(total, 0)
		})
	}
}

// partitionsOf returns the partitions that a process owns.
func (w *world) partitionsOf(p *processortest.Process) []int32 {
	w.tb.Helper()
	var owned []int32
	for _, row := range w.db.Rows(`select partition from consumer_offset where split_part(owner, '/', 2) = $1`, strconv.Itoa(p.Pid())) {
		n, err := strconv.ParseInt(row[0], 10, 32)
		must(w.tb, err)
		owned = append(owned, int32(n))
	}
	if len(owned) == 0 {
		w.tb.Fatal("the process owns nothing")
	}
	return owned
}

// lastOf returns the number of the last row of the partitions.
func (w *world) lastOf(partitions []int32) int64 {
	w.tb.Helper()
	n, err := strconv.ParseInt(w.db.Value(`select coalesce(max(seq), 0) from appended where p = any($1)`, partitions), 10, 64)
	must(w.tb, err)
	return n
}

// moves waits for new rows of the partitions, beyond the one of this number, and
// returns when there was the first, and when there was one of each.
func (w *world) moves(partitions []int32, beyond int64) (first, all time.Time) {
	w.tb.Helper()
	const count = `select (count(distinct p) >= $3)::text from appended where p = any($1) and seq > $2`
	w.waitUntil(count, partitions, beyond, 1)
	first = time.Now()
	w.waitUntil(count, partitions, beyond, len(partitions))
	return first, time.Now()
}
