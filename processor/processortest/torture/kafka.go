package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/processor/processortest"
)

// kafka is the broker of a run: one in this process, or a real one.
type kafka struct {
	fake *kfake.Cluster
	real *processortest.RealBroker
}

func startKafka(ctx context.Context, kind string) (*kafka, error) {
	if kind == "kafka" {
		broker, err := processortest.StartBroker(ctx, processortest.BrokerOptions{})
		return &kafka{real: broker}, err
	}
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		return nil, fmt.Errorf("torture: start a Kafka in this process: %w", err)
	}
	return &kafka{fake: fake}, nil
}

func (k *kafka) addrs() []string {
	if k.real != nil {
		return k.real.Addrs()
	}
	return k.fake.ListenAddrs()
}

func (k *kafka) close() error {
	if k.real != nil {
		return k.real.Close()
	}
	k.fake.Close()
	return nil
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

func (k *kafka) createTopic(ctx context.Context, partitions int) error {
	return k.admin(func(adm *kadm.Client) error {
		_, err := adm.CreateTopic(ctx, int32(partitions), 1, nil, topic)
		return err
	})
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
