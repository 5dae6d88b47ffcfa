//go:build unix

package processortest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
)

// RealCluster is several Apache Kafka brokers that replicate to each other, each
// of them a controller too: as long as more than half of them run, the cluster
// does. A client for all of them is embedded.
type RealCluster struct {
	*Client
	// Brokers are its brokers; the one with the number n, as Kafka's metadata has
	// it, is Brokers[n-1]. Each may be stopped, killed and restarted.
	Brokers []*RealBroker
}

// StartCluster starts so many brokers, each with a small heap, from jars, and waits
// until all of them answer. The caller closes it. The internal topics have a replica
// at each broker, and want one less to be in sync; so should the topics of a test.
// Its options have no Source: a cluster is from jars only.
func StartCluster(ctx context.Context, brokers int, opts BrokerOptions) (*RealCluster, error) {
	if opts.Source != FromAnywhere && opts.Source != FromJars || brokers < 1 {
		return nil, fmt.Errorf("processortest: start a cluster of %d brokers from %q: a cluster has brokers, and is from jars", brokers, opts.Source)
	}
	c, err := makeCluster(ctx, brokers, opts.replicated(brokers))
	if err == nil {
		err = c.start(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("processortest: start a cluster: %w", errors.Join(err, c.Close()))
	}
	return c, nil
}

// replicated are the options of one of so many brokers.
func (o BrokerOptions) replicated(brokers int) BrokerOptions {
	all, inSync := strconv.Itoa(brokers), strconv.Itoa(max(1, brokers-1))
	properties := map[string]string{
		"offsets.topic.replication.factor": all, "transaction.state.log.replication.factor": all, "share.coordinator.state.topic.replication.factor": all,
		"transaction.state.log.min.isr": inSync, "share.coordinator.state.topic.min.isr": inSync,
		// A broker that is gone, or stopped, is found to be within seconds.
		"replica.lag.time.max.ms": "3000",
	}
	maps.Copy(properties, o.Properties)
	o.Properties = properties
	if o.JVM == nil {
		o.JVM = []string{"-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"}
	}
	return o
}

// makeCluster formats the folders. All ports are chosen first, since each broker
// must know those of all controllers.
func makeCluster(ctx context.Context, brokers int, opts BrokerOptions) (*RealCluster, error) {
	c := &RealCluster{}
	var machines []*jarBroker
	var voters []string
	taken := map[int]bool{}
	for n := range brokers {
		m, l, err := makeJarBroker(ctx, opts, taken)
		if err != nil {
			return c, err
		}
		l.node = n + 1
		voters = append(voters, l.voter())
		machines = append(machines, m)
		c.Brokers = append(c.Brokers, &RealBroker{machine: m, layout: l, Client: NewClient(l.addr(plainListener))})
	}
	id := newClusterID()
	var addrs []string
	for n, b := range c.Brokers {
		b.layout.voters = strings.Join(voters, ",")
		if err := machines[n].format(ctx, id, b.layout.properties(opts)); err != nil {
			return c, err
		}
		addrs = append(addrs, b.layout.addr(plainListener))
	}
	c.Client = NewClient(addrs...)
	return c, nil
}

// start starts all of them before it waits for any: one alone is no quorum.
func (c *RealCluster) start(ctx context.Context) error {
	for _, b := range c.Brokers {
		if err := b.machine.start(ctx); err != nil {
			return err
		}
		b.running = true
	}
	for _, b := range c.Brokers {
		if err := b.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Broker returns the broker that Kafka's metadata gives this number, nil where
// there is none.
func (c *RealCluster) Broker(node int32) *RealBroker {
	if node < 1 || int(node) > len(c.Brokers) {
		return nil
	}
	return c.Brokers[node-1]
}

// Close ends all brokers and removes their data.
func (c *RealCluster) Close() error {
	if c == nil {
		return nil
	}
	var errs []error
	for _, b := range c.Brokers {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// BrokerCluster starts a cluster for one test and closes it when the test ends.
func BrokerCluster(tb testing.TB, brokers int, opts BrokerOptions) *RealCluster {
	tb.Helper()
	c, err := StartCluster(tb.Context(), brokers, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("processortest: close the cluster: %v", err)
		}
	})
	return c
}
