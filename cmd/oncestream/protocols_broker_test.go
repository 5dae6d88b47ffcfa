//go:build broker

package main

import (
	"testing"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Proves, for each way in which a group can share its partitions and for static
// members, that a member which is killed is replaced without loss or double.
func TestGroupProtocols(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kafka     string // a line of the pipeline file
		instances [2]string
	}{
		"range":              {kafka: "balancer: range"},
		"roundrobin":         {kafka: "balancer: roundrobin"},
		"sticky":             {kafka: "balancer: sticky"},
		"cooperative-sticky": {kafka: "balancer: cooperative-sticky"},
		"static":             {kafka: "balancer: cooperative-sticky", instances: [2]string{"one", "two"}},
		"static range":       {kafka: "balancer: range", instances: [2]string{"one", "two"}},
	}
	broker := processortest.SharedBroker(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newQuickJob(t, broker.Client, tablestest.New(t), tt.kafka)
			member := func(n int) *processortest.Process {
				if tt.instances[n] == "" {
					return j.run()
				}
				return j.run("--instance-id", tt.instances[n])
			}
			j.produce(1, 2000, 4, 0).sent()
			victim, other := member(0), member(1)
			j.until("both to be at work", func() bool { return j.owned(victim) > 0 && j.owned(other) > 0 })
			more := j.produce(2, 10_000, 4, 0)
			j.until("some of the second half", func() bool { return j.handled() > 2500 })
			victim.Kill()
			more.sent()
			heir := member(0)
			j.until("the end", func() bool { return j.handled() == j.audit.sent && j.owned(heir) > 0 })
			j.stops(other, heir)
			j.verify()
		})
	}
}
