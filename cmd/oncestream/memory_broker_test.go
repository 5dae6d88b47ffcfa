//go:build broker && linux

package main

import (
	"testing"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Proves that the memory of a process does not grow with how far it is behind:
// with five times the backlog its peak is about the same; one that held the backlog
// would need three times as much. What a process may
// hold grows with its partitions and the size of a batch: there is one partition
// and the batches are small, so that the smaller backlog, too, is far more than
// that.
//
// ONCESTREAM_TEST_RECORDS says how many records the larger backlog has.
// Defaults to 400,000.
func TestMemoryIsBounded(t *testing.T) {
	records := testRecords(t, 400_000)
	var small, large int
	t.Run("small", func(t *testing.T) { small = memoryPeak(t, records/5) })
	t.Run("large", func(t *testing.T) { large = memoryPeak(t, records) })
	t.Logf("peak of resident memory: %d MiB with %s records of backlog, %d MiB with %s",
		small>>20, thousands(records/5), large>>20, thousands(records))
	if small == 0 || large > small*9/5 {
		t.Errorf("with five times the backlog the peak is %.2f times as high", float64(large)/float64(small))
	}
}

// memoryPeak handles a backlog with one process and returns its peak in bytes.
func memoryPeak(t *testing.T, records int) int {
	t.Helper()
	j := newQuickJob(t, processortest.SharedBroker(t).Client, tablestest.New(t))
	j.produce(1, records, 1, 0).sent()
	j.exits(j.run("--to-end"))
	j.verifyTables()
	return j.peak
}
