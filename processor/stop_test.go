package processor_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
)

// Proves that a stop does not wait for a join that is under way: the coordinator
// answers it when all members have joined, and after a kill that takes as long as
// the group waits for the dead one, which is beyond the grace of a SIGTERM. (The
// torture has seen a process that hung so for half a minute.)
func TestStopWhileJoining(t *testing.T) {
	for _, id := range []string{processor.InstanceNone, "me"} {
		t.Run(id, func(t *testing.T) {
			kafka := processortest.Kafka(t, processortest.With(kfake.NumBrokers(1)))
			w := newWorldOn(t, kafka.Client, 1)
			joining, answer := make(chan struct{}, 10), make(chan struct{})
			t.Cleanup(func() { close(answer) })
			kafka.Cluster().ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
				kafka.Cluster().KeepControl()
				joining <- struct{}{}
				kafka.Cluster().SleepControl(func() { <-answer })
				return nil, nil, false
			})
			cfg := w.config()
			cfg.Kafka.InstanceID = id
			run := start(t, newProcessor(t, cfg, texts(appendSink{})))
			await(t, joining, "the join")
			began := time.Now()
			run.finish()
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the stop took %v", took)
			}
		})
	}
}
