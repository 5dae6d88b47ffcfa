package torture

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/processor/processortest"
)

// The kinds of broker that a run may have.
const (
	brokerFake    = "kfake"  // in this process
	brokerReal    = "kafka"  // one real broker
	brokerCluster = "kafka3" // three small ones that replicate
)

// clusterSize is how many brokers a cluster has.
const clusterSize = 3

// kafka is the broker of a run: one in this process, or real ones.
type kafka struct {
	fake *kfake.Cluster
	real []*processortest.RealBroker
	// links are the workers' ways to the real brokers; none where the brokers have
	// no listeners of ours.
	links []*kafkaLink
}

func startKafka(ctx context.Context, o Options) (*kafka, error) {
	if o.Broker == brokerFake {
		fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
		if err != nil {
			return nil, fmt.Errorf("torture: start a Kafka in this process: %w", err)
		}
		return &kafka{fake: fake}, nil
	}
	k := &kafka{}
	if err := k.startReal(ctx, o); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// startReal starts the brokers, with a listener for each worker, which it knows
// by the addresses of the worker's link only.
func (k *kafka) startReal(ctx context.Context, o Options) error {
	brokers := 1
	if o.Broker == brokerCluster {
		brokers = clusterSize
	}
	var options processortest.BrokerOptions
	for n := range o.Workers {
		link, err := newKafkaLink(brokers)
		if err != nil {
			return err
		}
		k.links = append(k.links, link)
		options.Listeners = append(options.Listeners, processortest.Listener{Name: listener(n), Protocol: "PLAINTEXT", Advertised: link.addrs()})
	}
	if o.Broker == brokerCluster {
		cluster, err := processortest.StartCluster(ctx, brokers, options)
		if err != nil {
			return err
		}
		k.real = cluster.Brokers
	} else {
		broker, err := processortest.StartBroker(ctx, options)
		if err != nil {
			return err
		}
		k.real = append(k.real, broker)
	}
	for n, link := range k.links {
		link.lead(func(b int) string { return k.real[b].ListenerAddr(listener(n)) })
	}
	return nil
}

// listener is the name of the listener of a worker.
func listener(worker int) string { return fmt.Sprintf("WORKER%d", worker) }

// addrs are the brokers' own addresses.
func (k *kafka) addrs() (addrs []string) {
	if k.fake != nil {
		return k.fake.ListenAddrs()
	}
	for _, b := range k.real {
		addrs = append(addrs, b.Addrs()...)
	}
	return addrs
}

// addrsFor are the addresses for a worker.
func (k *kafka) addrsFor(worker int) []string {
	if worker < len(k.links) && k.links[worker].leads() {
		return k.links[worker].addrs()
	}
	return k.addrs()
}

func (k *kafka) close() error {
	if k.fake != nil {
		k.fake.Close()
	}
	var errs []error
	for _, b := range k.real {
		errs = append(errs, b.Close())
	}
	for _, link := range k.links {
		link.close()
	}
	return errors.Join(errs...)
}

// down ends a real broker by f, as seen by the workers too.
func (k *kafka) down(broker int, f func() error) error {
	for _, link := range k.links {
		link.forwards[broker].refuse(brokerObstacle)
	}
	return f()
}

// up starts a real broker again, unless it runs.
func (k *kafka) up(ctx context.Context, broker int) error {
	err := k.real[broker].Start(ctx)
	for _, link := range k.links {
		err = errors.Join(err, link.forwards[broker].accept(brokerObstacle))
	}
	return err
}

// client returns a client that the caller closes.
func (k *kafka) client(opts ...kgo.Opt) (*kgo.Client, error) {
	opts = append([]kgo.Opt{
		kgo.SeedBrokers(k.addrs()...), kgo.MetadataMinAge(100 * time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
	}, opts...)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("torture: %w", err)
	}
	return client, nil
}

// admin calls f with a client for administration.
func (k *kafka) admin(f func(*kadm.Client) error) error {
	client, err := k.client()
	if err != nil {
		return err
	}
	defer client.Close()
	return f(kadm.NewClient(client))
}

// createTopic creates the topic; in a cluster each broker has a copy, and two of
// them must have a record before it is there.
func (k *kafka) createTopic(ctx context.Context, partitions int) error {
	most := strconv.Itoa(largest + 1<<20)
	replicas, settings := int16(1), map[string]*string{"max.message.bytes": &most}
	if len(k.real) > 1 {
		inSync := strconv.Itoa(len(k.real) - 1)
		replicas, settings["min.insync.replicas"] = int16(len(k.real)), &inSync
	}
	return k.admin(func(adm *kadm.Client) error {
		_, err := adm.CreateTopic(ctx, int32(partitions), replicas, settings, topic)
		return err
	})
}

// details are the partitions of the topic.
func (k *kafka) details(ctx context.Context) (all kadm.TopicDetail, err error) {
	err = k.admin(func(adm *kadm.Client) error {
		topics, err := adm.ListTopics(ctx, topic)
		if err == nil {
			err = topics.Error()
		}
		all = topics[topic]
		return err
	})
	return all, err
}

// ends returns the last stable offsets, by partition.
func (k *kafka) ends(ctx context.Context) (map[int32]int64, error) {
	ends := map[int32]int64{}
	err := k.admin(func(adm *kadm.Client) error {
		listed, err := adm.ListCommittedOffsets(ctx, topic)
		if err == nil {
			err = listed.Error()
		}
		listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
		return err
	})
	return ends, err
}
