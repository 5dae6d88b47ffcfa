package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// fetchTimeout is how long one record is waited for.
const fetchTimeout = 30 * time.Second

// fetchRecord reads one record again by its position.
func fetchRecord(ctx context.Context, k Kafka, r schema.Record) (schema.Record, error) {
	client, err := openPlain(k,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.Topic: {r.Partition: kgo.NewOffset().At(r.Offset)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	if err != nil {
		return r, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	for {
		fetches := client.PollRecords(ctx, 1)
		if err := fetches.Err(); err != nil {
			return r, fmt.Errorf("processor: read %s again: %w", r.Position(), err)
		}
		for _, got := range fetches.Records() {
			if got.Offset != r.Offset {
				return r, fmt.Errorf("processor: read %s again: %w", r.Position(), errors.New("the record is no longer in the log, and it was too large for its dead letter to keep its value"))
			}
			return newRecord(offsets.Identity{TopicID: r.TopicID}, got), nil
		}
	}
}
