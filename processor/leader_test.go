package processor_test

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncestream/oncestream/processor/processortest"
)

// Proves that a process which starts while partitions wait for their first leader,
// or for another, waits too, and then handles what is there. A topic of a thousand
// partitions needs seconds for that after it was created; and the torture, with one
// of three brokers killed, has seen every process that was started meanwhile give up.
func TestStartWithoutALeader(t *testing.T) {
	t.Parallel()
	cluster := processortest.Kafka(t)
	w := newWorldOn(t, cluster.Client, 1)
	w.produce(0, numbered("m", 10)...)
	causes := []*kerr.Error{kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.UnknownTopicOrPartition}
	var asked atomic.Int64
	cluster.Cluster().ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		n := int(asked.Add(1)) - 1
		if n >= 3*len(causes) {
			return nil, nil, false
		}
		cluster.Cluster().KeepControl()
		return notLeading(req.(*kmsg.ListOffsetsRequest), causes[n/3].Code), nil, true
	})
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(10)
	if asked.Load() <= int64(3*len(causes)) {
		t.Errorf("asked %d times", asked.Load())
	}
}

// notLeading answers the code for each of the partitions.
func notLeading(req *kmsg.ListOffsetsRequest, code int16) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, t := range req.Topics {
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			partition := kmsg.NewListOffsetsResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, code
			topic.Partitions = append(topic.Partitions, partition)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}
