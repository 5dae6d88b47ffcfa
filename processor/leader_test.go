package processor_test

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncestream/oncestream/processor/processortest"
)

// Proves that a run which begins while the topic's partitions have no leader yet
// waits for them, as a topic of a thousand partitions needs seconds after it was
// created.
func TestTopicWithoutLeaders(t *testing.T) {
	t.Parallel()
	cluster := processortest.Kafka(t)
	w := newWorldOn(t, cluster.Client, 1)
	w.produce(0, numbered("m", 10)...)
	const refused = 6
	var asked atomic.Int64
	cluster.Cluster().ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if asked.Add(1) > refused {
			return nil, nil, false
		}
		cluster.Cluster().KeepControl()
		return notLeading(req.(*kmsg.ListOffsetsRequest)), nil, true
	})
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(10)
	if asked.Load() <= refused {
		t.Errorf("asked %d times, and %d were refused", asked.Load(), refused)
	}
}

// notLeading answers that the broker leads none of the partitions.
func notLeading(req *kmsg.ListOffsetsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, t := range req.Topics {
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			partition := kmsg.NewListOffsetsResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, kerr.NotLeaderForPartition.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}
