//go:build broker

package processortest_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/oncestream/oncestream/processor/processortest"
)

// A cluster goes on without one of its three brokers: another one leads what the
// killed one has led, in a later epoch, and has its records.
func TestCluster(t *testing.T) {
	c := processortest.BrokerCluster(t, 3, processortest.BrokerOptions{})
	adm := c.Admin(t)
	inSync := "2"
	if _, err := adm.CreateTopic(t.Context(), 1, 3, map[string]*string{"min.insync.replicas": &inSync}, "t"); err != nil {
		t.Fatal(err)
	}
	c.Produce(t, "t", 0, processortest.Values("before")...)
	before := leader(t, adm)
	if err := c.Broker(before.Leader).Kill(); err != nil {
		t.Fatal(err)
	}
	c.Produce(t, "t", 0, processortest.Values("without one")...)
	if after := leader(t, adm); after.Leader == before.Leader || after.LeaderEpoch <= before.LeaderEpoch {
		t.Errorf("broker %d leads in epoch %d, as %d did in epoch %d", after.Leader, after.LeaderEpoch, before.Leader, before.LeaderEpoch)
	}
	if err := c.Broker(before.Leader).Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := read(t, c.Client, "t", 0, 2)
	if string(got[0].Value) != "before" || string(got[1].Value) != "without one" {
		t.Errorf("records %q and %q", got[0].Value, got[1].Value)
	}
}

// leader returns who leads the partition 0 of the topic t.
func leader(t *testing.T, adm *kadm.Client) kadm.PartitionDetail {
	t.Helper()
	topics, err := adm.ListTopics(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	return topics["t"].Partitions[0]
}
