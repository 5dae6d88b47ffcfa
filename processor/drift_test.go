package processor_test

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
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

// A start says where Kafka's offset and the stored one differ, a warning where
// Kafka is ahead, with both positions and the commands (case B16); and whatever
// Kafka has, nothing is skipped and nothing is done again.
func TestDriftAtTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		kafka int64
		want  []string
	}{
		"behind": {0, []string{"level=INFO", "0: Kafka 0, database 5", "oncestream replay FILE", "oncestream offsets rewind"}},
		"ahead":  {900, []string{"level=WARN", "0: Kafka 900, database 5", "never used"}},
		"equal":  {5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.produce(0, numbered("m", 5)...)
			toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
			w.CommitGroupOffset(t, w.group, w.topic, 0, tt.kafka)
			w.produce(0, numbered("n", 5)...)
			var log bytes.Buffer
			cfg := w.config()
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			toEnd(t, newProcessor(t, cfg, texts(appendSink{})))
			w.effects(10)
			line := ""
			for l := range strings.Lines(log.String()) {
				if strings.Contains(l, "Kafka's offset of the group") {
					line = l
				}
			}
			for _, part := range tt.want {
				if !strings.Contains(line, part) {
					t.Errorf("%q is not in %q", part, line)
				}
			}
			if tt.want == nil && line != "" {
				t.Errorf("nothing differs, and it says %s", line)
			}
		})
	}
}
