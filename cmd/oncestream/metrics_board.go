package main

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// board knows which partitions this process holds, and what the last look has
// told of them. It shows nothing of others: a partition that has moved on leaves
// no series behind, which would contradict those of its new owner (case H11).
type board struct {
	descs map[string]*prometheus.Desc

	mu     sync.Mutex
	held   map[int32]*heldPartition
	looked map[int32]partitionStatus // nil where the last look has failed
	oldest *time.Duration            // of the oldest transaction, nil where that is not known

	// claimed wakes the watch, so that a partition which came is looked at soon.
	// One waiting signal stands for all.
	claimed chan struct{}
}

// heldPartition is what the hooks have told of a partition.
type heldPartition struct {
	claimed, paused bool
	halted          string // the code, where it is
}

func newBoard() *board {
	b := &board{descs: map[string]*prometheus.Desc{}, held: map[int32]*heldPartition{}, claimed: make(chan struct{}, 1)}
	for _, d := range metricDocs() {
		if d.kind == gauge {
			b.descs[d.name] = prometheus.NewDesc(metricPrefix+d.name, d.help, d.labels, nil)
		}
	}
	return b
}

func (b *board) hooks() processor.Hooks {
	return processor.Hooks{
		Claimed: func(_ string, c offsets.Claim) {
			b.change(c.Partition, func(p *heldPartition) { p.claimed, p.halted = true, "" })
			select {
			case b.claimed <- struct{}{}:
			default: // it will be woken
			}
		},
		Released: func(_ string, c offsets.Claim) { b.leave(c.Partition) },
		Fenced:   func(_ string, c offsets.Claim) { b.leave(c.Partition) },
		Halted:   func(h processor.Halt) { b.change(h.Partition, func(p *heldPartition) { p.halted = h.Code }) },
		Paused:   func(_ string, n int32) { b.pause(n, true) },
		Resumed:  func(_ string, n int32) { b.pause(n, false) },
	}
}

func (b *board) change(partition int32, change func(*heldPartition)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.held[partition]
	if p == nil {
		p = &heldPartition{}
		b.held[partition] = p
	}
	change(p)
}

// pause notes a pause of a partition that is held; one that was fenced may still
// be paused, but is not ours to show.
func (b *board) pause(partition int32, paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.held[partition]; p != nil {
		p.paused = paused
	}
}

func (b *board) leave(partition int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, partition)
}

// holds reports whether this process holds the partition.
func (b *board) holds(partition int32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held[partition] != nil
}

// show takes what a look has told; a look that failed tells nil, and its series
// are gone rather than old.
func (b *board) show(partitions []partitionStatus, oldest *time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looked, b.oldest = map[int32]partitionStatus{}, oldest
	for _, p := range partitions {
		b.looked[p.Partition] = p
	}
}

// Describe is a part of [prometheus.Collector].
func (b *board) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range b.descs {
		descs <- d
	}
}

// Collect is a part of [prometheus.Collector].
func (b *board) Collect(series chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	send := func(name string, value float64, labels ...string) {
		series <- prometheus.MustNewConstMetric(b.descs[name], prometheus.GaugeValue, value, labels...)
	}
	for _, n := range slices.Sorted(maps.Keys(b.held)) {
		p, label := b.held[n], partitionLabel(n)
		send("partition_claimed", oneIf(p.claimed), label)
		send("partition_paused", oneIf(p.paused), label)
		if p.halted != "" {
			send("partition_halted", 1, label, p.halted)
		}
		if looked, ok := b.looked[n]; ok {
			looked.collect(func(name string, value float64) { send(name, value, label) })
		}
	}
	if b.oldest != nil {
		send("oldest_transaction_seconds", b.oldest.Seconds())
	}
}

// collect sends what a look has told of a partition.
func (p *partitionStatus) collect(send func(name string, value float64)) {
	send("lag_offsets", float64(p.Lag))
	send("open_dead_letters", float64(p.OpenDeadLetters))
	if p.Next != nil {
		send("next_offset", float64(*p.Next))
	}
	if p.Drift != nil {
		send("kafka_drift_offsets", float64(*p.Drift))
	}
	if f := p.forecast; f != nil {
		if f.Outlook != processor.OutlookUnknown {
			send("retention_remaining_seconds", remainingSeconds(*f))
		}
		send("lost_offsets", float64(f.Lost))
	}
}

// remainingSeconds is without bound where retention takes nothing.
func remainingSeconds(f processor.Forecast) float64 {
	switch f.Outlook {
	case processor.OutlookDue:
		return f.Remaining.Seconds()
	case processor.OutlookLost:
		return 0
	case processor.OutlookNone, processor.OutlookNever, processor.OutlookCompacted, processor.OutlookUnknown:
	}
	return math.Inf(1)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// troubles returns how many partitions this process holds, and those of them that
// do not move.
func (b *board) troubles() (held int, troubles []trouble) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(b.held)) {
		if code := b.held[n].halted; code != "" {
			troubles = append(troubles, trouble{n, true, "halted: " + code})
		}
	}
	return len(b.held), troubles
}
