package processor_test

import (
	"maps"
	"testing"

	"github.com/oncestream/oncestream/processor"
)

// What Kafka keeps for a group is read by partition: nothing for a group that it
// does not know, and nothing for a partition on which it has committed nothing,
// which is not an offset of 0 or -1.
func TestKafkaOffsets(t *testing.T) {
	w := newWorld(t, 3)
	w.produce(1, numbered("m", 5)...)
	for _, want := range []map[int32]int64{{}, {1: 4}, {1: 4, 2: 0}} {
		for partition, offset := range want {
			w.CommitGroupOffset(t, w.group, w.topic, partition, offset)
		}
		got, err := processor.KafkaOffsets(t.Context(), w.config().Kafka, w.group)
		must(t, err)
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
