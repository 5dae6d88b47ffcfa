package processor

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// OffsetsAt returns for each partition the offset of the first record whose
// timestamp is not before at, and the end of the log where there is none.
func (l *Lookout) OffsetsAt(ctx context.Context, at time.Time) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	listed, err := kadm.NewClient(l.client).ListOffsetsAfterMilli(ctx, at.UnixMilli(), l.kafka.Topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("processor: list the offsets of %s at %s: %w", l.kafka.Topic, at.Format(time.RFC3339), err)
	}
	offsets := map[int32]int64{}
	for partition, o := range listed[l.kafka.Topic] {
		offsets[partition] = o.Offset
	}
	return offsets, nil
}
