package processor_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
)

// Proves case B03: what retention removes under a processor that runs but is
// slow halts its partition when it gets there, with the range that is lost, and
// without a restart it goes on where a person says. Of what was there before, only
// that range has no effect.
func TestRetentionWhileRunning(t *testing.T) {
	w := newWorld(t, 2)
	random := rand.NewChaCha8([32]byte{})
	padding := func() string { // which no compression makes small: the client cannot read it all ahead
		bytes := make([]byte, 5_000)
		_, _ = random.Read(bytes) // never fails
		return hex.EncodeToString(bytes)
	}
	var before, after []string
	for i := range 600 {
		if body := fmt.Sprintf("m%d %s", i, padding()); i < 100 {
			before = append(before, body)
		} else {
			after = append(after, body)
		}
	}
	sink := newSlow()
	s := startHalting(w, sink, func(cfg *processor.Config) { cfg.Batch.MaxRecords = 10 })
	w.produce(0, processortest.Values(before...)...)
	w.next(0, 100)
	after[0] = "slow " + after[0]
	w.produce(0, processortest.Values(after...)...)
	await(t, sink.reached, "the slow message")
	w.DeleteRecords(t, w.topic, 0, 500)
	close(sink.letGo)
	h := await(t, s.halted, "the halt")
	if h.Code != processor.CodeRetentionPassed || h.To != 500 || h.From < 110 || h.From >= 500 || h.Offset != h.From {
		t.Errorf("halted at %d with %s [%d, %d): %v", h.Offset, h.Code, h.From, h.To, h.Err)
	}
	w.produce(1, numbered("other", 10)...)
	w.next(1, 10)
	w.decide(offsets.Skip, 0, 500)
	w.next(0, 600)
	s.finish()
	w.effects(600 - int(h.To-h.From) + 10)
	if got := w.db.Value(`select skipped from consumer_offset where partition = 0`); got != fmt.Sprint(h.To-h.From) {
		t.Errorf("skipped %s, want %d", got, h.To-h.From)
	}
}

// Proves case B09: the same topic name on another cluster, with lower offsets. It
// is refused before anything is read; adopted from its beginning, the mirrored
// messages are duplicates by their keys, and each new one has its effect.
func TestOtherCluster(t *testing.T) {
	w := newWorldOn(t, processortest.Kafka(t, processortest.With(kfake.ClusterID("first"))).Client, 1)
	w.produce(0, numbered("m", 5000)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.Client = processortest.Kafka(t, processortest.With(kfake.ClusterID("second"))).Client
	w.CreateTopic(t, w.topic, 1)
	w.produce(0, numbered("m", 3000)...)
	w.produce(0, numbered("new", 500)...)
	s := startHalting(w, appendSink{}, nil)
	h := w.awaitHalt(s, processor.CodeOtherCluster, 0, 5000, "adopt FILE --partition 0 --to-offset earliest")
	for _, cluster := range []string{`"first"`, `"second"`} {
		if !strings.Contains(h.Err.Error(), cluster) {
			t.Errorf("cluster %s is not in: %v", cluster, h.Err)
		}
	}
	w.effects(5000)
	w.decide(offsets.Adopt, 0, 0)
	w.next(0, 3500)
	s.finish()
	w.total(5500)
	if got := w.db.Value(`select duplicates_producer + duplicates_redelivery from consumer_offset`); got != "3000" {
		t.Errorf("%s duplicates, want 3000", got)
	}
}

// Proves case B14 at the level of the protocol: a broker that says of the leader
// epoch of what was handled that it ends before that halts the partition although
// the log has grown beyond the stored offset, and what has those offsets now is
// read once it is set back. The real log that was cut is in halt_broker_test.go.
func TestTruncatedByTheEpoch(t *testing.T) {
	cluster := processortest.Kafka(t)
	w := newWorldOn(t, cluster.Client, 1)
	w.produce(0, numbered("m", 100)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.produce(0, numbered("n", 50)...)
	cluster.Cluster().ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.Cluster().KeepControl()
		return epochEndsAt(req.(*kmsg.OffsetForLeaderEpochRequest), 95), nil, true
	})
	s := startHalting(w, appendSink{}, nil)
	w.awaitHalt(s, processor.CodeLogTruncated, 95, 100, "rewind FILE --partition 0 --to-offset 95")
	w.effects(100)
	w.decide(offsets.Rewind, 0, 95)
	w.next(0, 150)
	s.finish()
	w.effects(150)
}

// Proves that a topic which is created again while a claim looks at its log is taken
// for that, and not for a log that was cut: its remedy would be the wrong one. (The
// torture has seen a worker whose session still knew the old topic say so.)
func TestRecreatedWhileLookedAt(t *testing.T) {
	cluster := processortest.Kafka(t)
	w := newWorldOn(t, cluster.Client, 1)
	w.produce(0, numbered("m", 100)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	var once sync.Once
	cluster.Cluster().ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.Cluster().KeepControl()
		cluster.Cluster().SleepControl(func() {
			once.Do(func() { // whoever else asks waits, too
				w.DeleteTopic(t, w.topic)
				w.CreateTopic(t, w.topic, 1)
				w.produce(0, numbered("n", 5)...)
			})
		})
		return epochEndsAt(req.(*kmsg.OffsetForLeaderEpochRequest), 5), nil, true
	})
	s := startHalting(w, appendSink{}, nil)
	w.awaitHalt(s, processor.CodeTopicRecreated, 0, 100, "adopt FILE --partition 0 --to-offset earliest")
	w.effects(100)
	s.finish()
}

// epochEndsAt answers that the epoch that is asked for ends at an offset.
func epochEndsAt(req *kmsg.OffsetForLeaderEpochRequest, end int64) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, t := range req.Topics {
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			partition := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			partition.Partition, partition.LeaderEpoch, partition.EndOffset = p.Partition, p.LeaderEpoch, end
			topic.Partitions = append(topic.Partitions, partition)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// Proves that Kafka's own offset decides nothing (case B16 and point 4 of the
// design): moved to the beginning, to far ahead, or deleted with its group, a
// start goes on where the ledger stands, and so does the partition that it holds.
func TestKafkasOffsetIsNeverRead(t *testing.T) {
	w := newWorld(t, 2)
	total := 0
	round := func() {
		t.Helper()
		for p := range int32(2) {
			w.produce(p, numbered(fmt.Sprintf("r%d-%d-", total, p), 20)...)
		}
		toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
		total += 40
		w.effects(total)
	}
	round()
	for _, forge := range []func(){
		func() { w.CommitGroupOffset(t, w.group, w.topic, 0, 0) },
		func() { w.CommitGroupOffset(t, w.group, w.topic, 0, 1_000_000) },
		func() {
			deleted, err := w.Admin(t).DeleteGroups(t.Context(), w.group)
			must(t, err)
			must(t, deleted.Error())
		},
	} {
		forge()
		round()
	}
	if got := w.db.Value(`select sum(records) || ' ' || sum(duplicates_producer + duplicates_redelivery) from consumer_offset`); got != "160 0" {
		t.Errorf("records, duplicates: %s; something was read twice", got)
	}
}
