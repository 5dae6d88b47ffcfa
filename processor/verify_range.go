package processor

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/oncestream/oncestream/schema"
)

// stretch is what is verified of one partition: the offsets [from, to), and the
// records that there are in it.
type stretch struct {
	partition int32
	from, to  int64
	records   []schema.Record
}

// chunk returns up to n records from the offset on, as if they had been polled.
func (s *stretch) chunk(next int64, n int) chunk {
	i, _ := slices.BinarySearchFunc(s.records, next, func(r schema.Record, offset int64) int { return cmp.Compare(r.Offset, offset) })
	c := chunk{records: s.records[i:min(i+n, len(s.records))], end: s.to, leaderEpoch: -1}
	if i+n < len(s.records) {
		c.end = s.records[i+n-1].Offset + 1
	}
	return c
}

// later returns the stretch as if the producer had sent all of it again.
func (s stretch) later() stretch {
	by := s.to - s.from
	again := stretch{partition: s.partition, from: s.to, to: s.to + by, records: slices.Clone(s.records)}
	for i := range again.records {
		again.records[i].Offset += by
	}
	return again
}

// reader reads a range of the topic into memory.
type reader struct {
	p     *Processor
	opts  *VerifyOptions
	topic Topic
	spans []RangeReport
	read  map[int32][]schema.Record
	bytes int
	seen  int64
}

// readRange reads the records that are verified.
func (p *Processor) readRange(ctx context.Context, r Range, opts *VerifyOptions) (*reader, error) {
	topic, err := InspectTopic(ctx, p.cfg.Kafka)
	if err != nil {
		return nil, err
	}
	in := &reader{p: p, opts: opts, topic: topic, read: map[int32][]schema.Record{}}
	if in.spans, err = r.latest(topic, opts.Records, p.cfg.Kafka.ReadUncommitted); err != nil {
		return nil, err
	}
	source, err := openRange(ctx, p.cfg.Kafka, in.spans)
	if err != nil {
		return nil, err
	}
	defer source.close()
	for !source.done() {
		partition, chunks, err := source.next(ctx)
		if err != nil {
			return nil, err
		}
		for i := range chunks {
			if err := in.take(ctx, partition, chunks[i].records); err != nil {
				return nil, err
			}
		}
	}
	return in, nil
}

// latest resolves the range: what it does not bound is the topic's end, and as
// much before that as makes the number of records, shared among the partitions.
func (r Range) latest(topic Topic, records int64, uncommitted bool) ([]RangeReport, error) {
	spans := make([]RangeReport, len(topic.Partitions))
	for i, p := range topic.Partitions {
		end := p.Stable
		if uncommitted {
			end = p.End
		}
		if to, ok := r.To[p.Partition]; ok {
			end = to
		}
		spans[i] = RangeReport{Partition: p.Partition, From: min(p.Start, end), To: end}
	}
	for _, bound := range []map[int32]int64{r.From, r.To} {
		for p := range bound {
			if p < 0 || int(p) >= len(spans) {
				return nil, fmt.Errorf("processor: verify %s/%d: the topic has %d partitions", topic.Name, p, len(spans))
			}
		}
	}
	// The shortest first: what a partition does not have, the others may take.
	slices.SortFunc(spans, func(a, b RangeReport) int { return cmp.Compare(a.To-a.From, b.To-b.From) })
	for i := range spans {
		share := records / int64(len(spans)-i)
		spans[i].From = max(spans[i].From, spans[i].To-share)
		records -= spans[i].To - spans[i].From
		if from, ok := r.From[spans[i].Partition]; ok {
			spans[i].From = min(from, spans[i].To)
		}
	}
	slices.SortFunc(spans, func(a, b RangeReport) int { return cmp.Compare(a.Partition, b.Partition) })
	return slices.DeleteFunc(spans, func(s RangeReport) bool { return s.From == s.To }), nil
}

// take keeps the records whose keys are in the sample.
func (in *reader) take(ctx context.Context, partition int32, records []schema.Record) error {
	for i := range records {
		r := &records[i]
		in.seen++
		keep, err := in.sampled(ctx, r)
		if err != nil {
			return fmt.Errorf("processor: verify %s: decode: %w", r.Position(), err)
		}
		if !keep {
			continue
		}
		in.bytes += size(r)
		if in.bytes > in.opts.MaxBytes {
			return fmt.Errorf("processor: verify %s: the range holds more than %d bytes, which is how much is kept in memory: "+
				"take fewer records, a sample, or raise VerifyOptions.MaxBytes (--max-bytes)", r.Position(), in.opts.MaxBytes)
		}
		in.read[partition] = append(in.read[partition], *r)
	}
	return nil
}

// sampled reports whether a record is verified. A sample takes whole keys: of a
// key that it has, each repeat is there. A record without a key stands for itself.
func (in *reader) sampled(ctx context.Context, r *schema.Record) (bool, error) {
	if in.opts.Sample == 1 {
		return true, nil
	}
	var b batch
	err := in.p.decoder.decode(ctx, &b, r)
	if err != nil && unavailable(err) {
		return false, err
	}
	var sum uint64
	if err == nil {
		sum = xxhash.Sum64(b.entries[0].Key[:])
	} else {
		sum = xxhash.Sum64(binary.LittleEndian.AppendUint64(nil, uint64(r.Offset)))
	}
	return float64(sum)/math.MaxUint64 < in.opts.Sample, nil
}

// stretches are what was read, by partition.
func (in *reader) stretches() []stretch {
	all := make([]stretch, len(in.spans))
	for i := range in.spans {
		s := &in.spans[i]
		all[i] = stretch{partition: s.Partition, from: s.From, to: s.To, records: in.read[s.Partition]}
	}
	return all
}

// shuffled returns the stretch with the records of different record keys in
// another order, each key in its own. A record without one stands for itself.
// The offsets stay where they are, so that records change their positions.
func (s stretch) shuffled(lot *rand.Rand) stretch {
	var turns []int // which of the keys comes next
	queues := [][]schema.Record{}
	byKey := map[string]int{}
	for _, r := range s.records {
		n, known := byKey[string(r.Key)]
		if !known || r.Key == nil {
			n = len(queues)
			queues = append(queues, nil)
			if r.Key != nil {
				byKey[string(r.Key)] = n
			}
		}
		queues[n] = append(queues[n], r)
		turns = append(turns, n)
	}
	lot.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	mixed := make([]schema.Record, len(s.records))
	for i, n := range turns {
		mixed[i], queues[n] = queues[n][0], queues[n][1:]
		mixed[i].Offset = s.records[i].Offset
	}
	s.records = mixed
	return s
}
