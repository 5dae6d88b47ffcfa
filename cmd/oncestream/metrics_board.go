package main

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// board shows the partitions that this process holds: what the engine says of
// them when it is asked, and what the last look has told. It shows nothing of
// others: a partition that has moved on leaves no series behind, which would
// contradict those of its new owner (case H11).
type board struct {
	descs map[string]*prometheus.Desc

	mu     sync.Mutex
	health func() processor.Health
	looked map[int32]partitionStatus // empty where the last look has failed
	oldest *time.Duration            // of the oldest transaction, nil where that is not known

	// claimed wakes the watch, so that a partition which came is looked at soon.
	// One waiting signal stands for all.
	claimed chan struct{}
}

func newBoard() *board {
	b := &board{
		descs: map[string]*prometheus.Desc{}, claimed: make(chan struct{}, 1),
		health: func() processor.Health { return processor.Health{} },
	}
	for _, d := range metricDocs() {
		if d.kind == gauge {
			b.descs[d.name] = prometheus.NewDesc(metricPrefix+d.name, d.help, d.labels, nil)
		}
	}
	return b
}

func (b *board) hooks() processor.Hooks {
	return processor.Hooks{Claimed: func(string, offsets.Claim) {
		select {
		case b.claimed <- struct{}{}:
		default: // it will be woken
		}
	}}
}

// follow has the board ask a run how it does.
func (b *board) follow(health func() processor.Health) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.health = health
}

// asks asks it.
func (b *board) asks() processor.Health {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.health()
}

// holding returns whether this process holds a partition at the moment. One that
// is being claimed may still be another's.
func (b *board) holding() func(partition int32) bool {
	held := map[int32]bool{}
	for _, p := range b.asks().Partitions {
		held[p.Partition] = isHeld(p)
	}
	return func(partition int32) bool { return held[partition] }
}

func isHeld(p processor.PartitionHealth) bool { return p.State != processor.StateClaiming }

// show takes what a look has told. One that failed tells of no partition: their
// series are gone rather than old.
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
	for _, p := range b.health().Partitions {
		label := partitionLabel(p.Partition)
		send("partition_stuck_seconds", stuckSeconds(p), label)
		if !isHeld(p) {
			continue
		}
		send("partition_claimed", 1, label)
		send("partition_paused", oneIf(p.Paused), label)
		if p.State == processor.StateHalted {
			send("partition_halted", 1, label, p.Code)
		}
		if looked, ok := b.looked[p.Partition]; ok {
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

func stuckSeconds(p processor.PartitionHealth) float64 {
	if !p.Stuck {
		return 0
	}
	return time.Since(p.Since).Seconds()
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
