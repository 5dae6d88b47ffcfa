package processortest

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Cluster is a Kafka cluster inside the test's process. It speaks the protocol,
// keeps its records in memory and lives as long as its test.
type Cluster struct {
	*Client
	fake *kfake.Cluster
}

// Option changes what [Kafka] starts.
type Option func(*[]kfake.Opt)

// WithTopic creates topics before the cluster answers, each with the number of
// partitions.
func WithTopic(partitions int32, topics ...string) Option {
	return With(kfake.SeedTopics(partitions, topics...))
}

// WithBrokers sets how many brokers the cluster has. Defaults to 1.
func WithBrokers(n int) Option { return With(kfake.NumBrokers(n)) }

// With passes options on to kfake, for what has no name here.
func With(opts ...kfake.Opt) Option {
	return func(all *[]kfake.Opt) { *all = append(*all, opts...) }
}

// Kafka starts a cluster that is closed when the test ends. It has one broker
// and no topics, creates none by itself, and accepts group session timeouts
// from 100 ms on, unless options say otherwise.
func Kafka(tb testing.TB, opts ...Option) *Cluster {
	tb.Helper()
	all := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.GroupMinSessionTimeout(100 * time.Millisecond),
	}
	for _, opt := range opts {
		opt(&all)
	}
	fake, err := kfake.NewCluster(all...)
	if err != nil {
		tb.Fatalf("processortest: start kfake: %v", err)
	}
	tb.Cleanup(fake.Close)
	return &Cluster{Client: NewClient(fake.ListenAddrs()...), fake: fake}
}

// Cluster returns the kfake cluster itself, to inject faults (ControlKey,
// Fault), to move leaders, or to look at a group or a partition.
func (c *Cluster) Cluster() *kfake.Cluster { return c.fake }
