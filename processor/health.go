package processor

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// HealthState is what a partition is at.
type HealthState string

// The states of a partition.
const (
	// StateClaiming: the claim, or what must be known before the first fetch, is
	// waited for.
	StateClaiming HealthState = "claiming"
	// StateWorking: records were read and are not committed yet.
	StateWorking HealthState = "working"
	// StateWaiting: all that was read is committed. An idle topic looks so.
	StateWaiting HealthState = "waiting"
	// StateHalted: it was stopped on purpose; a person decides.
	StateHalted HealthState = "halted"
)

// Health is how a run is doing in this process.
type Health struct {
	// Degraded means that a partition is halted or stuck. The others go on, so
	// this is no reason to restart the process.
	Degraded bool
	// Partitions are those that are assigned to this process, by number. There
	// are none between two runs.
	Partitions []PartitionHealth
}

// PartitionHealth is how one partition is doing in this process.
type PartitionHealth struct {
	Partition int32
	State     HealthState
	// Since is when the state began; while working, when the batch in work was
	// begun or the one before it was committed, whichever is later. It is by
	// the clock of this process, as all times here.
	Since time.Time
	// Stuck means that it is claiming or working for longer than
	// Config.StuckAfter: something blocks its transaction, or the database or
	// the broker cannot be reached.
	Stuck bool
	// Code and Reason say why it is halted, Remedy which command resolves it, for
	// the pipeline file FILE. All are empty where it is not.
	Code, Reason, Remedy string
	// Next is the next offset to handle, -1 before the first claim.
	Next int64
	// Progress is when something was committed last under this assignment, zero
	// where nothing was.
	Progress time.Time
	// Paused means that nothing more is fetched at the moment, because enough
	// has been read ahead.
	Paused bool
}

// String says the state, and since when, for a person.
func (p PartitionHealth) String() string {
	switch {
	case p.State == StateHalted:
		return fmt.Sprintf("halted at offset %d since %s: %s", p.Next, p.Since.UTC().Format(time.RFC3339), p.Code)
	case p.Stuck:
		return fmt.Sprintf("stuck while %s at offset %d since %s", p.State, p.Next, p.Since.UTC().Format(time.RFC3339))
	}
	return string(p.State)
}

// Health returns how the run is doing, at once: it asks neither the database
// nor a broker. It may be called at any time, from any goroutine.
func (p *Processor) Health() Health {
	e := p.running.Load()
	if e == nil {
		return Health{}
	}
	return e.health(time.Now())
}

func (e *engine) health(now time.Time) Health {
	e.mu.Lock()
	defer e.mu.Unlock()
	var h Health
	for _, w := range e.workers {
		p := w.pulse.health(now, e.cfg.StuckAfter)
		p.Partition, p.Paused = w.partition, w.paused.Load()
		h.Degraded = h.Degraded || p.Stuck || p.State == StateHalted
		h.Partitions = append(h.Partitions, p)
	}
	slices.SortFunc(h.Partitions, func(a, b PartitionHealth) int { return cmp.Compare(a.Partition, b.Partition) })
	return h
}

// pulse is what a worker lets others see of itself.
type pulse struct {
	mu      sync.Mutex
	claimed bool
	halt    *Halt
	since   time.Time // when what is seen of it began
	next    int64     // of the claim
	taken   int64     // up to where records were taken off the queue
	moved   time.Time
}

// newPulse returns the pulse of a worker that begins to claim.
func newPulse() pulse { return pulse{next: -1, since: time.Now()} }

// claiming notes that the worker starts over.
func (p *pulse) claiming() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claimed || p.halt != nil {
		p.since = time.Now()
	}
	p.claimed, p.halt = false, nil
}

// begin notes that reading begins at next.
func (p *pulse) begin(next int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claimed, p.halt, p.next, p.taken, p.since = true, nil, next, next, time.Now()
}

// take notes that there is work up to an offset.
func (p *pulse) take(to int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken <= p.next {
		p.since = time.Now()
	}
	p.taken = max(p.taken, to)
}

// pass notes that everything before next is committed.
func (p *pulse) pass(next int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.moved = next, time.Now()
	p.since = p.moved
}

func (p *pulse) stop(h Halt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halt, p.next, p.since = &h, h.Offset, time.Now()
}

func (p *pulse) health(now time.Time, stuckAfter time.Duration) PartitionHealth {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := PartitionHealth{State: StateWaiting, Since: p.since, Next: p.next, Progress: p.moved}
	switch {
	case p.halt != nil:
		h.State, h.Code, h.Reason, h.Remedy = StateHalted, p.halt.Code, p.halt.Err.Error(), p.halt.Remedy
	case !p.claimed:
		h.State = StateClaiming
	case p.taken > p.next:
		h.State = StateWorking
	}
	h.Stuck = (h.State == StateClaiming || h.State == StateWorking) && now.Sub(h.Since) > stuckAfter
	return h
}
