package processor

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
)

// CopyRecords publishes the last records of a topic anew, at most so many, each to
// the partition of its number, and returns how many that were. The publisher's topic
// must have as many partitions as the one that is read, of which [InspectTopic] tells.
// It joins no group. Kafka.Start is not looked at.
func CopyRecords(ctx context.Context, from Kafka, to *Publisher, most int64) (int64, error) {
	topic, err := InspectTopic(ctx, from)
	if err != nil {
		return 0, err
	}
	source, err := openRange(ctx, from, tails(topic, most))
	if err != nil {
		return 0, err
	}
	defer source.close()
	copied := int64(0)
	for {
		_, chunks, err := source.next(ctx)
		if err != nil || len(chunks) == 0 {
			return copied, err
		}
		for i := range chunks {
			if err := to.Publish(ctx, chunks[i].records); err != nil {
				return copied, err
			}
			copied += int64(len(chunks[i].records))
		}
	}
}

// tails are the ends of all partitions, of one length together at most.
func tails(topic Topic, most int64) []RangeReport {
	each := max(1, most/int64(max(1, len(topic.Partitions))))
	var ranges []RangeReport
	for _, p := range topic.Partitions {
		ranges = append(ranges, RangeReport{Partition: p.Partition, From: max(p.Start, p.Stable-each), To: p.Stable})
	}
	return ranges
}

// DeleteTopic deletes the topic with all that is in it.
func (p *Publisher) DeleteTopic(ctx context.Context) error {
	deleted, err := kadm.NewClient(p.client).DeleteTopic(ctx, p.topic)
	if err == nil {
		err = deleted.Err
	}
	if err != nil {
		return fmt.Errorf("processor: delete topic %s: %w", p.topic, err)
	}
	return nil
}
