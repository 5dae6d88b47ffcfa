package processortest_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/oncestream/oncestream/processor/processortest"
)

// A fault injected through Cluster strikes, is counted, and is survived: the
// cluster that tests reach by Addrs is the one that Cluster returns.
func TestKafkaFaults(t *testing.T) {
	c := processortest.Kafka(t, processortest.WithTopic(1, "t"), processortest.WithBrokers(3))
	if n := len(c.Addrs()); n != 3 {
		t.Errorf("%d addresses, want 3", n)
	}
	fault := c.Cluster().Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: "t", Err: kerr.NotLeaderForPartition, Count: 2,
	})
	c.Produce(t, "t", 0, processortest.Values("after two refusals")...)
	if hits := fault.Hits(); hits != 2 {
		t.Errorf("the fault struck %d times, want 2", hits)
	}
}

// Helpers leave no goroutine behind once their test has ended.
func TestKafkaLeaksNothing(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	t.Run("use", func(t *testing.T) {
		c := processortest.Kafka(t, processortest.WithTopic(1, "t"))
		c.Produce(t, "t", 0, processortest.Values("v")...)
		c.Begin(t, "left-open").Produce(t, "t", 0, processortest.Values("v")...)
		c.Admin(t)
	})
	goleak.VerifyNone(t, ignore)
}
