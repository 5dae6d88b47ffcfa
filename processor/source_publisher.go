package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/schema"
)

// Publisher writes records to a topic, each to the partition that it names.
type Publisher struct {
	client *kgo.Client
	topic  string
}

// OpenPublisher returns a publisher to the configuration's topic. Kafka.Start
// is not looked at.
func OpenPublisher(k Kafka) (*Publisher, error) {
	client, err := openPlain(k, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.SnappyCompression(), kgo.NoCompression()))
	if err != nil {
		return nil, err
	}
	return &Publisher{client: client, topic: k.Topic}, nil
}

// CreateTopic creates the topic with the cluster's default replication. A topic
// that exists is left as it is.
func (p *Publisher) CreateTopic(ctx context.Context, partitions int32) error {
	created, err := kadm.NewClient(p.client).CreateTopic(ctx, partitions, -1, nil, p.topic)
	if err == nil {
		err = created.Err
	}
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("processor: create topic %s: %w", p.topic, err)
	}
	return nil
}

// Publish writes the records and waits until all in-sync replicas have them.
// The order within a partition is kept. Of a record, its Partition, Key, Value,
// Headers and, where set, Time are used.
func (p *Publisher) Publish(ctx context.Context, records []schema.Record) error {
	out := make([]*kgo.Record, len(records))
	for i := range records {
		r := &records[i]
		out[i] = &kgo.Record{Topic: p.topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: r.Time}
		for _, h := range r.Headers {
			out[i].Headers = append(out[i].Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
	}
	if err := p.client.ProduceSync(ctx, out...).FirstErr(); err != nil {
		return fmt.Errorf("processor: publish %d records to %s: %w", len(records), p.topic, err)
	}
	return nil
}

// Close ends the connections.
func (p *Publisher) Close() { p.client.Close() }
