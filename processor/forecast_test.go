package processor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// aged returns n records of the given age, by their own timestamps.
func aged(now time.Time, age time.Duration, n int) []schema.Record {
	records := numbered("m", n)
	for i := range records {
		records[i].Time = now.Add(-age)
	}
	return records
}

// forecasts writes the forecasts for the stored offsets, by partition.
func (w *world) forecasts(next map[int32]int64, now time.Time) string {
	w.tb.Helper()
	l, err := processor.OpenLookout(w.config().Kafka)
	must(w.tb, err)
	defer l.Close()
	topic, err := l.Topic(w.tb.Context())
	must(w.tb, err)
	all, err := l.Forecasts(w.tb.Context(), topic, next, now)
	must(w.tb, err)
	text := make([]string, len(all))
	for i, f := range all {
		text[i] = fmt.Sprintf("%d: %v", f.Partition, f)
	}
	return strings.Join(text, "; ")
}

// The broker's own words lead to the forecast: the time of the record at the
// stored offset of each partition, which is not the log's first, the topic's
// configuration, and the bounds of the log. A partition without a stored offset
// has none.
func TestForecasts(t *testing.T) {
	const hour = time.Hour
	now := time.Now().Truncate(time.Millisecond) // which is what a record keeps of it
	for name, tt := range map[string]struct {
		configs []string
		want    string
	}{
		"by time":     {[]string{"retention.ms", "86400000"}, "0: 3h0m; 1: none; 2: lost 2; 3: 23h0m"},
		"for ever":    {[]string{"retention.ms", "-1"}, "0: never; 1: none; 2: lost 2; 3: never"},
		"by size":     {[]string{"retention.ms", "-1", "retention.bytes", "1"}, "0: 1h0m; 1: none; 2: lost 2; 3: 21h0m"},
		"by both":     {[]string{"retention.ms", "86400000", "retention.bytes", "1"}, "0: 1h0m; 1: none; 2: lost 2; 3: 21h0m"},
		"compacted":   {[]string{"cleanup.policy", "compact"}, "0: never, compacted; 1: none; 2: never, compacted; 3: never, compacted"},
		"both at all": {[]string{"cleanup.policy", "compact,delete", "retention.ms", "86400000"}, "0: 3h0m; 1: none; 2: lost 2; 3: 23h0m"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 5, tt.configs...)
			for p := range int32(5) {
				for _, age := range []time.Duration{22 * hour, 21 * hour, hour} {
					records := aged(now, age, 2)
					for i := range records {
						records[i].Key = fmt.Appendf(nil, "%v %d", age, i) // a compacted topic takes no record without one
					}
					w.produce(p, records...)
				}
			}
			if name != "compacted" { // a broker refuses it there
				w.DeleteRecords(t, w.topic, 2, 5)
			}
			next := map[int32]int64{0: 2, 1: 6, 2: 3, 3: 5}
			if got := w.forecasts(next, now); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
