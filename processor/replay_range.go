package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oncestream/oncestream/offsets"
)

// resolve says which offsets of which partitions are read. A group that has begun
// knows them by itself, unless it is to go on to the end of the log.
func (r Range) resolve(ctx context.Context, k Kafka, progress []offsets.Progress) ([]RangeReport, error) {
	if !r.ToEnd {
		return r.spans(k.Topic, progress)
	}
	topic, err := InspectTopic(ctx, k)
	if err != nil {
		return nil, err
	}
	known := map[int32]offsets.Progress{}
	for _, p := range progress {
		known[p.Partition] = p
	}
	all := make([]offsets.Progress, len(topic.Partitions))
	for i, bounds := range topic.Partitions {
		all[i] = offsets.Progress{Partition: bounds.Partition, First: bounds.Start, Next: bounds.Stable}
		if k.ReadUncommitted {
			all[i].Next = bounds.End
		}
		if p, ok := known[bounds.Partition]; ok {
			all[i].First = max(p.First, bounds.Start)
		}
	}
	return r.spans(k.Topic, all)
}

// spans resolves the range against what the group has read.
func (r Range) spans(topic string, progress []offsets.Progress) ([]RangeReport, error) {
	var spans []RangeReport
	known := map[int32]bool{}
	for _, p := range progress {
		known[p.Partition] = true
		s := RangeReport{Partition: p.Partition, From: p.First, To: p.Next}
		if from, ok := r.From[p.Partition]; ok {
			s.From = max(s.From, from)
		}
		if to, ok := r.To[p.Partition]; ok {
			s.To = min(s.To, to)
		}
		if s.From < s.To {
			spans = append(spans, s)
		}
	}
	if len(progress) == 0 {
		return nil, fmt.Errorf("processor: replay %s: the group has read nothing of it yet", topic)
	}
	for _, bound := range []map[int32]int64{r.From, r.To} {
		for p := range bound {
			if !known[p] {
				return nil, fmt.Errorf("processor: replay %s/%d: the group has no position in this partition", topic, p)
			}
		}
	}
	return spans, nil
}

// aboveFloors refuses a range in which keys were purged: that one is missing
// would say nothing of its effect.
func (r Range) aboveFloors(ctx context.Context, db offsets.DB, ledger *offsets.Ledger, topic string, spans []RangeReport) error {
	if r.BeyondFloor {
		return nil
	}
	floors, err := ledger.Floors(ctx, db)
	errs := []error{err}
	for _, f := range floors {
		i := slices.IndexFunc(spans, func(s RangeReport) bool { return s.Partition == f.Partition && s.From <= f.Offset })
		if i >= 0 {
			errs = append(errs, fmt.Errorf("processor: replay %s/%d@%d: keys up to offset %d were purged, so that a missing one says nothing; "+
				"begin at %d, or set Range.BeyondFloor (--beyond-floor)", topic, f.Partition, spans[i].From, f.Offset, f.Offset+1))
		}
	}
	return errors.Join(errs...)
}
