package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// KafkaOffsets returns the offsets that Kafka keeps for the group on the topic,
// by partition. They are told to Kafka behind each batch and decide nothing;
// what differs from the ledger's is drift. A partition for which Kafka keeps
// none is absent, and so are all of a group that Kafka does not know.
func KafkaOffsets(ctx context.Context, k Kafka, group string) (map[int32]int64, error) {
	client, err := openPlain(k, impatient())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return kafkaOffsets(ctx, kadm.NewClient(client), k.Topic, group)
}

func kafkaOffsets(ctx context.Context, admin *kadm.Client, topic, group string) (map[int32]int64, error) {
	fail := func(err error) error {
		return fmt.Errorf("processor: ask Kafka for the offsets of group %s on %s: %w", group, topic, err)
	}
	stored, err := admin.FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, fail(err)
	}
	offsets := map[int32]int64{}
	for partition, o := range stored[topic] {
		if o.Err != nil {
			return nil, fail(fmt.Errorf("partition %d: %w", partition, o.Err))
		}
		if o.At >= 0 {
			offsets[partition] = o.At
		}
	}
	return offsets, nil
}
