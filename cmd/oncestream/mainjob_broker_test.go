//go:build broker

package main

import (
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Proves the main job, with the example's file as it is: of two processes one
// is killed in the middle and started again, and a third joins; after that
// every payment is stored once, the balance of each customer is right to the
// cent, the lag is 0, the account adds up, and a replay finds nothing new.
//
// ONCESTREAM_TEST_RECORDS says how many records are sent. Defaults to 100,000.
func TestMainJob(t *testing.T) {
	records := testRecords(t, 100_000)
	// A moment in which both members can join before the first of them has
	// handled everything.
	broker := processortest.Broker(t, processortest.BrokerOptions{Properties: map[string]string{"group.initial.rebalance.delay.ms": "1000"}})
	j := newJob(t, broker.Client, tablestest.New(t), "example/payments.yaml", "payments")
	j.produce(1, records, 8, 0).sent()

	began := time.Now()
	first, second := j.run("--to-end"), j.run("--to-end")
	j.until("both to be at work", func() bool { return j.owned(first) > 0 && j.owned(second) > 0 })
	work, handled := time.Now(), j.handled()
	j.until("a third of the records", func() bool { return j.handled() >= int64(records/3) })
	rate := float64(j.handled()-handled) / time.Since(work).Seconds()
	owned := j.owned(first)
	first.Kill()
	if handled := j.handled(); handled >= j.audit.sent || owned == 0 {
		t.Fatalf("the kill was not in the middle: %d of %d handled, %d partitions held", handled, j.audit.sent, owned)
	}
	again, third := j.run("--to-end"), j.run("--to-end")
	waitLine(t, third, `claimed`)
	for _, m := range []*processortest.Process{again, second, third} {
		j.exits(m)
	}
	took := time.Since(began)
	j.verify()
	t.Logf("%s records: %s a second before the kill, %s a second in all %.1f s with the kill; a process had at most %d MiB resident",
		thousands(records), thousands(int(rate)), thousands(int(float64(records)/took.Seconds())), took.Seconds(), j.peak>>20)
}
