//go:build broker

package processor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
)

// ownBroker starts a broker for one test, with its log in a folder of the test's.
func ownBroker(t *testing.T, logs string) *processortest.RealBroker {
	t.Helper()
	broker, err := processortest.StartBroker(t.Context(), processortest.BrokerOptions{
		Source: processortest.FromJars, Properties: map[string]string{"log.dirs": logs}, JVM: []string{"-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"},
	})
	must(t, err)
	t.Cleanup(func() { must(t, broker.Close()) })
	return broker
}

// Proves case B01 under load: a topic that is deleted and created again while much
// of it is still unread halts each of its partitions, and adopted, each message of
// the new topic has one effect, and none of the old one has a second.
func TestRecreatedUnderLoad(t *testing.T) {
	const partitions = 6
	w := newWorldOn(t, processortest.SharedBroker(t).Client, partitions)
	s := startHalting(w, appendSink{}, func(cfg *processor.Config) { cfg.Batch.MaxRecords = 20 })
	for p := range int32(partitions) {
		w.produce(p, numbered(fmt.Sprintf("old%d-", p), 2000)...)
	}
	w.waitFor(`select sum(next_offset) > 500 from consumer_offset`, "t")
	w.DeleteTopic(t, w.topic)
	w.CreateTopic(t, w.topic, partitions)
	for p := range int32(partitions) {
		w.produce(p, numbered(fmt.Sprintf("new%d-", p), 300)...)
	}
	old := 0
	for range partitions {
		h := await(t, s.halted, "each partition to halt")
		if h.Code != processor.CodeTopicRecreated || h.To != h.Offset {
			t.Errorf("halted %d@%d with %s [%d, %d): %v", h.Partition, h.Offset, h.Code, h.From, h.To, h.Err)
		}
		old += int(h.Offset)
	}
	w.total(old)
	for p := range int32(partitions) {
		w.decide(offsets.Adopt, p, 0)
	}
	for p := range int32(partitions) {
		w.next(p, 300)
	}
	s.finish()
	w.total(old + partitions*300)
}

// Proves case B09 on two real clusters: the stored offset is refused on the
// second one, whose log of the same name is shorter, and adopted there.
func TestOtherRealCluster(t *testing.T) {
	w := newWorldOn(t, processortest.SharedBroker(t).Client, 1)
	w.produce(0, numbered("m", 2000)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.Client = ownBroker(t, t.TempDir()).Client
	w.CreateTopic(t, w.topic, 1)
	w.produce(0, numbered("m", 600)...)
	w.produce(0, numbered("new", 100)...)
	s := startHalting(w, appendSink{}, nil)
	w.awaitHalt(s, processor.CodeOtherCluster, 0, 2000, "adopt FILE --partition 0 --to-offset earliest")
	w.effects(2000)
	w.decide(offsets.Adopt, 0, 0)
	w.next(0, 700)
	s.finish()
	w.total(2100)
}

// Proves case B14 on a real broker: its log is cut at 95 while it is down, and
// five other records take the offsets 95 to 99. The log is as long as before, so
// that only the leader epoch tells; the five are not skipped as done.
func TestTruncatedLog(t *testing.T) {
	logs := t.TempDir()
	broker := ownBroker(t, logs)
	w := newWorldOn(t, broker.Client, 1)
	log := filepath.Join(logs, w.topic+"-0", "00000000000000000000.log")
	w.produce(0, numbered("m", 95)...)
	size := fileSize(t, log)
	w.produce(0, numbered("lost", 5)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(100)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, broker.Stop(ctx))
	must(t, os.Truncate(log, size))
	if err := os.Remove(filepath.Join(logs, ".kafka_cleanshutdown")); !errors.Is(err, os.ErrNotExist) {
		must(t, err)
	}
	must(t, broker.Restart(ctx))
	w.produce(0, numbered("other", 5)...)
	if end := w.EndOffset(t, w.topic, 0); end != 100 {
		t.Fatalf("the log ends at %d, the fault did not strike", end)
	}

	s := startHalting(w, appendSink{}, nil)
	w.awaitHalt(s, processor.CodeLogTruncated, 95, 100, "rewind FILE --partition 0 --to-offset 95")
	w.effects(100)
	w.decide(offsets.Rewind, 0, 95)
	w.next(0, 100)
	s.finish()
	w.total(105)
}

func fileSize(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	must(t, err)
	return info.Size()
}
