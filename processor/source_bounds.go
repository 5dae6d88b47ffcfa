package processor

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/oncestream/oncestream/offsets"
)

// rangeError is a stored offset that the log does not hold. What the log does
// hold is filled in by explain.
type rangeError struct {
	next, start, end int64
	known            bool
}

func (r *rangeError) Error() string {
	switch {
	case !r.known:
		return fmt.Sprintf("the stored offset %d is not in the log", r.next)
	case r.next < r.start:
		return fmt.Sprintf("the stored offset %d lies before the log, which begins at %d: the records [%d, %d) were removed before they were read", r.next, r.start, r.next, r.start)
	}
	return fmt.Sprintf("the stored offset %d lies beyond the end of the log at %d: the log was truncated, or it is another log", r.next, r.end)
}

// explain asks what the log holds.
func (s *groupSource) explain(ctx context.Context, c offsets.Claim, r *rangeError) {
	r.next = c.Next
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	t := Topic{Name: s.topic}
	if err := t.list(ctx, kadm.NewClient(s.kafka())); err != nil {
		return
	}
	for _, p := range t.Partitions {
		if p.Partition == c.Partition {
			r.start, r.end, r.known = p.Start, p.End, true
		}
	}
}

// logStart returns the first offset of a partition's log.
func (s *groupSource) logStart(ctx context.Context, partition int32) (int64, error) {
	t := Topic{Name: s.topic}
	if err := t.list(ctx, kadm.NewClient(s.kafka())); err != nil {
		return 0, err
	}
	for _, p := range t.Partitions {
		if p.Partition == partition {
			return p.Start, nil
		}
	}
	return 0, fmt.Errorf("processor: list the start of %s/%d: %w", s.topic, partition, kerr.UnknownTopicOrPartition)
}
