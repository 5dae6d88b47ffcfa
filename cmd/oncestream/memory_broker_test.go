//go:build broker && linux

package main

import (
	"testing"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Proves that the memory of a process does not grow with how far it is behind:
// with five times the backlog its peak is about the same.
//
// ONCESTREAM_TEST_RECORDS says how many records the larger backlog has.
// Defaults to 300,000.
func TestMemoryIsBounded(t *testing.T) {
	records := testRecords(t, 300_000)
	small, large := memoryPeak(t, "small", records/5), memoryPeak(t, "large", records)
	t.Logf("peak of resident memory: %d MiB with %s records of backlog, %d MiB with %s",
		small>>20, thousands(records/5), large>>20, thousands(records))
	if small == 0 || large > small*3/2 {
		t.Errorf("with five times the backlog the peak is %.2f times as high", float64(large)/float64(small))
	}
}

// memoryPeak handles a backlog with one process and returns its peak in bytes.
func memoryPeak(t *testing.T, topic string, records int) int {
	t.Helper()
	j := newJob(t, processortest.SharedBroker(t).Client, tablestest.New(t), "example/payments.yaml", "memory-"+topic)
	j.produce(1, records, 8, 0).sent()
	j.exits(j.run("--to-end"))
	j.verifyTables()
	return j.peak
}
