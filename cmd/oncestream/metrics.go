package main

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// metrics counts what the engine's hooks tell. The counters are of the process
// and not of its partitions: the sum over the fleet stays right when a partition
// moves. What is known of a partition is on the board, and leaves with it.
type metrics struct {
	registry    *prometheus.Registry
	counters    map[string]*prometheus.CounterVec
	transaction *prometheus.HistogramVec
	board       *board

	mu sync.Mutex
	// unknown are the batches whose COMMIT had no answer: what they hold counts
	// once it is found committed.
	unknown map[int32]processor.BatchInfo
}

// newMetrics returns the metrics of a group on a topic, in a registry that also
// has those of the Go runtime and of the process.
func newMetrics(group, topic string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(), counters: map[string]*prometheus.CounterVec{}, board: newBoard(),
		unknown: map[int32]processor.BatchInfo{},
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	ours := prometheus.WrapRegistererWith(prometheus.Labels{"group": group, "topic": topic}, m.registry)
	for _, d := range metricDocs() {
		switch d.kind {
		case counter:
			c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricPrefix + d.name, Help: d.help}, d.labels)
			if len(d.labels) == 0 {
				c.WithLabelValues() // is there from the beginning, with 0
			}
			m.counters[d.name] = c
			ours.MustRegister(c)
		case histogram:
			m.transaction = prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: metricPrefix + d.name, Help: d.help, Buckets: prometheus.ExponentialBuckets(0.002, 2.5, 12), // to 47 s, near the default timeout
			}, d.labels)
			ours.MustRegister(m.transaction)
		}
	}
	ours.MustRegister(m.board)
	return m
}

// add adds to a counter.
func (m *metrics) add(name string, n int64, labels ...string) {
	m.counters[name].WithLabelValues(labels...).Add(float64(n))
}

// hooks are the ears of the metrics.
func (m *metrics) hooks() processor.Hooks {
	h := m.board.hooks()
	return joinHooks(h, processor.Hooks{
		Committed: m.committed,
		RolledBack: func(processor.BatchInfo, error) {
			m.add("batches_total", 1, "rolled_back")
		},
		CommitUnknown: m.commitUnknown,
		Resolved:      m.resolved,
		Fenced:        func(string, offsets.Claim) { m.add("fenced_total", 1) },
		WentBack:      func(string, offsets.Claim, offsets.Claim) { m.add("went_back_total", 1) },
		Dropped:       func(_ string, _ int32, records int) { m.add("records_dropped_total", int64(records)) },
		Purged:        func(keys int64) { m.add("keys_purged_total", keys) },
		Retrying:      func(what string, _ error, _ time.Duration) { m.add("retries_total", 1, what) },
	})
}

func (m *metrics) committed(b processor.BatchInfo) {
	m.transaction.WithLabelValues().Observe(b.Elapsed.Seconds())
	m.count(b)
}

func (m *metrics) count(b processor.BatchInfo) {
	m.add("batches_total", 1, "committed")
	switch {
	case b.Contested:
		m.add("batches_contested_total", 1, "twice")
	case b.Inserted:
		m.add("batches_contested_total", 1, "inserted")
	}
	m.add("records_total", int64(b.Records))
	m.add("effects_total", int64(b.Fresh))
	m.add("duplicates_total", int64(b.DuplicatesProducer), "producer")
	m.add("duplicates_total", int64(b.DuplicatesRedelivered), "redelivery")
	for reason, n := range b.Reasons {
		m.add("dead_letters_total", int64(n), string(reason))
	}
}

func (m *metrics) commitUnknown(b processor.BatchInfo, _ error) {
	m.add("commits_unknown_total", 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unknown[b.Partition] = b
}

func (m *metrics) resolved(b processor.BatchInfo, committed bool) {
	m.mu.Lock()
	whole, known := m.unknown[b.Partition]
	delete(m.unknown, b.Partition)
	m.mu.Unlock()
	if !committed {
		m.add("commits_resolved_total", 1, "aborted")
		m.add("batches_total", 1, "rolled_back")
		return
	}
	m.add("commits_resolved_total", 1, "committed")
	if known && whole.From == b.From {
		b = whole
	}
	m.count(b)
}

// partitionLabel is a partition as the value of a label.
func partitionLabel(p int32) string { return strconv.Itoa(int(p)) }
