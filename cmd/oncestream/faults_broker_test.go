//go:build broker

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/embedded"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Proves that a process which was stopped for longer than its session may last
// loses its partitions to the other, says so in one line when it goes on, and
// then takes its part of the work again: each payment once, and a graceful end
// of both.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	j := newQuickJob(t, processortest.SharedBroker(t).Client, tablestest.New(t))
	j.produce(1, 8000, 8, 0).sent()
	sleeper, heir := j.run(), j.run()
	j.until("both to be at work", func() bool { return j.owned(sleeper) > 0 && j.owned(heir) > 0 })
	must(t, sleeper.Pause())
	j.produce(2, 8000, 8, 0).sent()
	j.until("the heir to have all", func() bool { return j.owned(heir) == 8 && j.handled() == j.audit.sent })
	must(t, sleeper.Resume())
	waitLine(t, sleeper, `lost ownership`)
	j.until("the sleeper to be at work again", func() bool { return j.owned(sleeper) > 0 && j.owned(heir) > 0 })
	j.produce(3, 8000, 8, 0).sent()
	j.until("the end", func() bool { return j.handled() == j.audit.sent })
	j.stops(sleeper, heir)
	lines := sleeper.Lines()
	said := strings.Join(lines, "\n")
	if strings.Contains(said, "level=ERROR") {
		t.Errorf("it says more than a warning:\n%s", said)
	}
	j.verify()
	for _, line := range lines {
		if strings.Contains(line, "lost ownership") {
			t.Log("the process that was stopped says: ", line)
		}
	}
}

// Proves that two processes recover by themselves, under load, from a database
// that stops at once and is away for 20 seconds, and from a broker that is
// killed and started again: nothing is lost or doubled.
func TestOutages(t *testing.T) {
	t.Parallel()
	const outage = 20 * time.Second
	server := tablestest.Server(t)
	broker := processortest.Broker(t, processortest.BrokerOptions{})
	j := newQuickJob(t, broker.Client, tablestest.New(t, tablestest.OnServer(server.URL(""))))

	load := j.produce(1, 50_000, 8, 2000)
	waitLine(t, load.Process, `^sent:`) // the topic is there
	one, other := j.run(), j.run()
	j.until("both to be at work", func() bool { return j.owned(one) > 0 && j.owned(other) > 0 && j.handled() > 1000 })
	must(t, server.Stop(t.Context(), embedded.StopImmediate))
	<-time.After(outage) // the fault itself
	must(t, server.Restart(t.Context()))
	j.db.Pool.Reset() // the test's own connections are gone, too
	j.caughtUp("after the database was back")
	load.sent()
	j.caughtUp("after the end of the load")

	load = j.produce(2, 30_000, 8, 2000)
	before := j.handled()
	j.until("the next records", func() bool { return j.handled() > before+1000 })
	must(t, broker.Kill())
	must(t, broker.Restart(t.Context()))
	back := time.Now()
	before = j.handled()
	j.until("the producer and the group to go on", func() bool { return j.handled() > before+1000 })
	t.Logf("after the broker was back, the next 1,000 records were handled in %.1f s", time.Since(back).Seconds())
	j.caughtUp("after that")
	load.sent()
	j.until("the end", func() bool { return j.handled() == j.audit.sent })
	j.stops(one, other)
	j.verify()
}

// caughtUp waits until all is handled that the topic holds right now.
func (j *job) caughtUp(since string) {
	j.tb.Helper()
	began := time.Now()
	s := j.status()
	end := int64(0)
	for _, p := range s.Partitions {
		end += p.End
	}
	j.until("the lag to be gone", func() bool { return j.handled() >= end })
	j.tb.Logf("%s, a lag of %s was gone in %.1f s", since, thousands(s.Total.Lag), time.Since(began).Seconds())
}
