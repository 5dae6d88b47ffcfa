package processor_test

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncestream/oncestream/processor/processortest"
)

// Proves that a process which starts while a partition waits for another leader
// waits too, and then handles what is there. (The torture, with a broker of three
// killed, has seen every process that was started meanwhile give up: a partition
// whose replicas are all away would so have stopped the others.)
func TestStartWithoutALeader(t *testing.T) {
	kafka := processortest.Kafka(t, processortest.With(kfake.NumBrokers(1)))
	w := newWorldOn(t, kafka.Client, 1)
	w.produce(0, numbered("m", 3)...)
	var asked atomic.Int64
	kafka.Cluster().ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if asked.Add(1) > 4 {
			return nil, nil, false
		}
		kafka.Cluster().KeepControl()
		request := req.(*kmsg.ListOffsetsRequest)
		response := request.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, of := range request.Topics {
			topic := kmsg.NewListOffsetsResponseTopic()
			topic.Topic = of.Topic
			for _, p := range of.Partitions {
				partition := kmsg.NewListOffsetsResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, kerr.LeaderNotAvailable.Code
				topic.Partitions = append(topic.Partitions, partition)
			}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil, true
	})
	run := start(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.waitFor(`select count(*) from appended`, "3")
	run.finish()
	w.effects(3)
	if asked.Load() <= 4 {
		t.Errorf("the brokers were asked %d times", asked.Load())
	}
}
