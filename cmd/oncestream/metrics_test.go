package main

import (
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// Joined hooks are all called, in their order and with their arguments, and a
// hook that nobody has stays none. It is shown for every field, by reflection, so
// that a hook which is added is held to it.
func TestJoinHooks(t *testing.T) {
	var called []string
	hooks := func(name string) processor.Hooks {
		var h processor.Hooks
		v := reflect.ValueOf(&h).Elem()
		for i := range v.NumField() {
			field := v.Type().Field(i)
			v.Field(i).Set(reflect.MakeFunc(field.Type, func(args []reflect.Value) []reflect.Value {
				called = append(called, name+" "+field.Name+" "+args[0].Type().String())
				return nil
			}))
		}
		return h
	}
	joined := reflect.ValueOf(joinHooks(hooks("a"), processor.Hooks{}, hooks("b")))
	for i := range joined.NumField() {
		field := joined.Type().Field(i)
		args := make([]reflect.Value, field.Type.NumIn())
		for n := range args {
			args[n] = reflect.Zero(field.Type.In(n))
		}
		called = nil
		joined.Field(i).Call(args)
		kind := args[0].Type().String()
		if want := []string{"a " + field.Name + " " + kind, "b " + field.Name + " " + kind}; !slices.Equal(called, want) {
			t.Errorf("%s: called %q, want %q", field.Name, called, want)
		}
	}
	if none := joinHooks(processor.Hooks{}, processor.Hooks{}); !reflect.ValueOf(none).IsZero() {
		t.Errorf("hooks of none are %+v", none)
	}
}

// everyMetric makes a series of each metric.
func everyMetric() *metrics {
	m := newMetrics("g", "t")
	h := m.hooks()
	claim := offsets.Claim{Partition: 1, Epoch: 2, Next: 10}
	h.Claimed("t", claim)
	h.Committed(processor.BatchInfo{
		Topic: "t", Partition: 1, Records: 10, Fresh: 6, DuplicatesProducer: 1, DuplicatesRedelivered: 2,
		DeadLetters: 1, Reasons: map[schema.Reason]int{schema.ReasonDecode: 1}, Contested: true, Inserted: true, Elapsed: 30 * time.Millisecond,
	})
	h.RolledBack(processor.BatchInfo{}, errors.New("deadlock"))
	unknown := processor.BatchInfo{Partition: 1, From: 10, To: 15, Records: 5, Fresh: 4, DuplicatesProducer: 1, Inserted: true}
	h.CommitUnknown(unknown, errors.New("gone"))
	h.Resolved(processor.BatchInfo{Partition: 1, From: 10, To: 15, Records: 5}, true)
	h.CommitUnknown(unknown, errors.New("gone"))
	h.Resolved(processor.BatchInfo{Partition: 1, From: 10, To: 15, Records: 5}, false)
	h.WentBack("t", offsets.Claim{Partition: 1, Next: 9}, offsets.Claim{Partition: 1, Next: 5})
	h.Dropped("t", 1, 3)
	h.Purged(7)
	h.Retrying("batch", errors.New("deadlock"), time.Second)
	h.Fenced("t", offsets.Claim{Partition: 2})
	m.board.follow(func() processor.Health {
		return processor.Health{Partitions: []processor.PartitionHealth{
			{Partition: 1, State: processor.StateHalted, Code: "decode", Paused: true},
			{Partition: 2, State: processor.StateClaiming, Paused: true},
		}}
	})
	m.add("looks_failed_total", 1)
	next, drift, age := int64(10), int64(-2), time.Minute
	looked := partitionStatus{Partition: 1, Next: &next, Drift: &drift, Lag: 5, OpenDeadLetters: 1}
	looked.predicted(processor.Forecast{Outlook: processor.OutlookDue, Remaining: time.Hour})
	m.board.show([]partitionStatus{looked, {Partition: 2, Next: &next, Lag: 77}}, &age)
	return m
}

// families gathers our metrics.
func families(t *testing.T, m *metrics) []*dto.MetricFamily {
	t.Helper()
	all, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), metricPrefix) })
}

// seriesOf writes the series of the families as a scrape shows them, without the
// labels group and topic.
func seriesOf(t *testing.T, m *metrics) []string {
	t.Helper()
	var lines []string
	for _, f := range families(t, m) {
		for _, s := range f.GetMetric() {
			var labels []string
			for _, l := range s.GetLabel() {
				if l.GetName() != "group" && l.GetName() != "topic" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			value := s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount())
			lines = append(lines, strings.TrimPrefix(f.GetName(), metricPrefix)+"{"+strings.Join(labels, ",")+"} "+slog.Float64Value(value).String())
		}
	}
	slices.Sort(lines)
	return lines
}

// Each hook reaches its metric: what a COMMIT without an answer had held counts
// once, when it is found committed; a partition that is not held has none of the
// series of a holder, though a look has seen it (case H11).
func TestMetrics(t *testing.T) {
	want := []string{
		"batches_contested_total{done=inserted} 1", "batches_contested_total{done=twice} 1",
		"batches_total{outcome=committed} 2", "batches_total{outcome=rolled_back} 2",
		"commits_resolved_total{outcome=aborted} 1", "commits_resolved_total{outcome=committed} 1", "commits_unknown_total{} 2",
		"dead_letters_total{reason=decode} 1", "duplicates_total{cause=producer} 2", "duplicates_total{cause=redelivery} 2",
		"effects_total{} 10", "fenced_total{} 1", "kafka_drift_offsets{partition=1} -2", "keys_purged_total{} 7",
		"lag_offsets{partition=1} 5", "looks_failed_total{} 1", "lost_offsets{partition=1} 0", "next_offset{partition=1} 10",
		"oldest_transaction_seconds{} 60", "open_dead_letters{partition=1} 1", "partition_claimed{partition=1} 1",
		"partition_halted{code=decode,partition=1} 1", "partition_paused{partition=1} 1",
		"partition_stuck_seconds{partition=1} 0", "partition_stuck_seconds{partition=2} 0", "records_dropped_total{} 3", "records_total{} 15",
		"retention_remaining_seconds{partition=1} 3600", "retries_total{what=batch} 1", "transaction_seconds{} 1", "went_back_total{} 1",
	}
	m := everyMetric()
	if diff := cmp.Diff(want, seriesOf(t, m)); diff != "" {
		t.Error(diff)
	}
	m.board.follow(func() processor.Health { return processor.Health{} })
	for _, line := range seriesOf(t, m) {
		if strings.Contains(line, "partition=") {
			t.Errorf("after the release there is %s", line)
		}
	}
}

// The table of the metrics, which the README shows, is what the registry has:
// names, kinds, labels and meanings.
func TestMetricsTable(t *testing.T) {
	type row struct {
		Name, Kind, Help string
		Labels           []string
	}
	var got, want []row
	for _, f := range families(t, everyMetric()) {
		r := row{Name: strings.TrimPrefix(f.GetName(), metricPrefix), Kind: strings.ToLower(f.GetType().String()), Help: f.GetHelp()}
		for _, l := range f.GetMetric()[0].GetLabel() {
			if l.GetName() != "group" && l.GetName() != "topic" {
				r.Labels = append(r.Labels, l.GetName())
			}
		}
		slices.Sort(r.Labels)
		got = append(got, r)
	}
	for _, d := range metricDocs() {
		r := row{d.name, d.kind, d.help, slices.Clone(d.labels)}
		slices.Sort(r.Labels)
		want = append(want, r)
	}
	byName := func(a, b row) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(got, byName)
	slices.SortFunc(want, byName)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Only what can still be helped is not ready: a halted partition beside others
// leaves the process ready and says so, with the command for this file; one without
// others does not; and a process without a partition waits for one.
func TestReadiness(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	good := processor.PartitionHealth{Partition: 0, State: processor.StateWorking, Since: at, Next: 3}
	halted := processor.PartitionHealth{Partition: 1, State: processor.StateHalted, Since: at, Next: 7, Code: "decode", Remedy: "oncestream offsets skip FILE --partition 1"}
	stuck := processor.PartitionHealth{Partition: 2, State: processor.StateWorking, Since: at, Next: 9, Stuck: true}
	const isHalted = "t/1 halted at offset 7 since 2026-05-04T12:00:00Z: decode; oncestream offsets skip p.yaml --partition 1"
	const isStuck = "t/2 stuck while working at offset 9 since 2026-05-04T12:00:00Z"
	for _, tt := range []struct {
		partitions []processor.PartitionHealth
		want       readiness
	}{
		{nil, readiness{true, "ok"}},
		{[]processor.PartitionHealth{good}, readiness{true, "ok"}},
		{[]processor.PartitionHealth{good, halted}, readiness{true, "degraded: " + isHalted}},
		{[]processor.PartitionHealth{halted, stuck}, readiness{true, "degraded: " + isHalted + "\n" + isStuck}},
		{[]processor.PartitionHealth{stuck}, readiness{true, "degraded: " + isStuck}},
		{[]processor.PartitionHealth{halted}, readiness{false, "halted: " + isHalted}},
	} {
		if got := readinessOf("t", "p.yaml", processor.Health{Partitions: tt.partitions}); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.partitions, got, tt.want)
		}
	}
}
