package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// rangeSource reads spans of a topic without a group, each from its beginning
// to its end.
type rangeSource struct {
	client *kgo.Client
	topic  Topic
	spans  map[int32]*span
	polled []polled
}

type span struct {
	from, to, next int64
}

type polled struct {
	partition int32
	chunk     chunk
}

func openRange(ctx context.Context, k Kafka, ranges []RangeReport) (*rangeSource, error) {
	s := &rangeSource{spans: map[int32]*span{}}
	from := map[int32]kgo.Offset{}
	for _, r := range ranges {
		s.spans[r.Partition] = &span{from: r.From, to: r.To, next: r.From}
		from[r.Partition] = kgo.NewOffset().At(r.From)
	}
	opts := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{k.Topic: from}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.KeepControlRecords(),
	}
	if !k.ReadUncommitted {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	var err error
	if s.client, err = openPlain(k, opts...); err != nil {
		return nil, err
	}
	if s.topic, err = inspect(ctx, s.client, k); err == nil {
		err = s.check()
	}
	if err != nil {
		s.client.Close()
		return nil, err
	}
	return s, nil
}

// check sees to it that the whole range can be read: a range that has lost its
// beginning proves nothing about it, and its end must be in the log, or reading
// would wait for ever.
func (s *rangeSource) check() error {
	var errs []error
	for _, p := range s.topic.Partitions {
		r, ok := s.spans[p.Partition]
		switch {
		case !ok:
		case r.from < p.Start:
			errs = append(errs, fmt.Errorf("processor: replay %s/%d: the log begins at %d, so [%d, %d) cannot be read again; start there with --from", s.topic.Name, p.Partition, p.Start, r.from, min(r.to, p.Start)))
		case r.to > p.End:
			errs = append(errs, fmt.Errorf("processor: replay %s/%d: the stored offset %d lies beyond the end of the log at %d", s.topic.Name, p.Partition, r.to, p.End))
		}
	}
	return errors.Join(errs...)
}

// done reports whether every span has been read to its end.
func (s *rangeSource) done() bool {
	if len(s.polled) > 0 {
		return false
	}
	for _, r := range s.spans {
		if r.next < r.to {
			return false
		}
	}
	return true
}

// progress returns how many offsets are read, and of how many.
func (s *rangeSource) progress() (done, total int64) {
	for _, r := range s.spans {
		done += min(r.next, r.to) - r.from
		total += r.to - r.from
	}
	return done, total
}

// next returns the next chunk of some partition, in the order of its offsets.
// An end is reached by position: gaps and transaction markers count.
func (s *rangeSource) next(ctx context.Context) (int32, []chunk, error) {
	for len(s.polled) == 0 {
		if s.done() {
			return 0, nil, nil
		}
		if err := s.poll(ctx); err != nil {
			return 0, nil, err
		}
	}
	head := s.polled[0]
	s.polled = s.polled[1:]
	return head.partition, []chunk{head.chunk}, nil
}

func (s *rangeSource) poll(ctx context.Context) error {
	fetches := s.client.PollRecords(ctx, rangePoll)
	var errs []error
	fetches.EachError(func(_ string, partition int32, err error) {
		errs = append(errs, fmt.Errorf("processor: replay %s/%d: %w", s.topic.Name, partition, err))
	})
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		r := s.spans[p.Partition]
		if r == nil || len(p.Records) == 0 {
			return
		}
		c := newChunk(s.topic.identity(), p.Records, time.Now())
		r.next = c.end
		for n := len(c.records); n > 0 && c.records[n-1].Offset >= r.to; n-- {
			c.records = c.records[:n-1]
		}
		s.polled = append(s.polled, polled{p.Partition, c})
		if r.next >= r.to {
			s.client.PauseFetchPartitions(map[string][]int32{s.topic.Name: {p.Partition}})
		}
	})
	slices.SortStableFunc(s.polled, func(a, b polled) int { return int(a.partition - b.partition) })
	return nil
}

// rangePoll is about a batch.
const rangePoll = 5000

func (s *rangeSource) close() { s.client.Close() }
