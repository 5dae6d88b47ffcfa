package processor

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/oncestream/oncestream/offsets"
)

// listing has the first offsets and the ends of all partitions of the topic.
type listing struct{ starts, ends kadm.ListedOffsets }

// list asks for them. A partition may carry an error of its own.
func (s *groupSource) list(ctx context.Context) (l listing, err error) {
	admin := kadm.NewClient(s.kafka())
	if l.starts, err = admin.ListStartOffsets(ctx, s.topic); err != nil {
		return l, err
	}
	l.ends, err = admin.ListEndOffsets(ctx, s.topic)
	return l, err
}

// listShared is list for all who ask at the same time: each partition of an
// assignment does.
func (s *groupSource) listShared(ctx context.Context) (listing, error) {
	answer := s.lists.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(s.e.ctx, startTimeout)
		defer cancel()
		return s.list(ctx)
	})
	select {
	case <-ctx.Done():
		return listing{}, ctx.Err()
	case a := <-answer:
		l, _ := a.Val.(listing)
		return l, a.Err
	}
}

// bounds asks what the log of the claim's partition holds.
func (s *groupSource) bounds(ctx context.Context, c offsets.Claim, shared bool) (logBounds, error) {
	list := s.list
	if shared {
		list = s.listShared
	}
	l, err := list(ctx)
	b := logBounds{epochEnd: -1}
	if err == nil {
		b.start, err = offsetOf(l.starts, s.topic, c.Partition)
	}
	if err == nil {
		b.end, err = offsetOf(l.ends, s.topic, c.Partition)
	}
	if err == nil && c.LeaderEpoch >= 0 {
		b.epochEnd, err = s.epochEnd(ctx, c)
	}
	if err != nil {
		s.e.suspect() // the topic may be gone
		return b, fmt.Errorf("processor: look at the log of %s/%d: %w", s.topic, c.Partition, err)
	}
	return b, nil
}

func offsetOf(l kadm.ListedOffsets, topic string, partition int32) (int64, error) {
	o, ok := l.Lookup(topic, partition)
	if !ok {
		return 0, kerr.UnknownTopicOrPartition
	}
	return o.Offset, o.Err
}

// epochEnd asks where the records of the claim's leader epoch end (KIP-320), -1
// where the broker does not know.
func (s *groupSource) epochEnd(ctx context.Context, c offsets.Claim) (int64, error) {
	var request kadm.OffsetForLeaderEpochRequest
	request.Add(s.topic, c.Partition, c.LeaderEpoch)
	answers, err := kadm.NewClient(s.kafka()).OffsetForLeaderEpoch(ctx, request)
	if err != nil {
		return -1, err
	}
	a, ok := answers[s.topic][c.Partition]
	if !ok {
		return -1, kerr.UnknownTopicOrPartition
	}
	return a.EndOffset, a.Err
}

// logStart returns the first offset of a partition's log.
func (s *groupSource) logStart(ctx context.Context, partition int32) (int64, error) {
	l, err := s.listShared(ctx)
	var start int64
	if err == nil {
		start, err = offsetOf(l.starts, s.topic, partition)
	}
	if err != nil {
		return 0, fmt.Errorf("processor: list the start of %s/%d: %w", s.topic, partition, err)
	}
	return start, nil
}
