package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/oncestream/oncestream/processor"
)

// readiness is the answer of /readyz.
type readiness struct {
	ready bool
	text  string
}

// readinessOf judges the partitions that are assigned to this process. One that
// is halted or stuck is no reason to restart the process, which would halt it
// again and stop the others: as long as one other goes on the answer is ready, and
// says "degraded". Where all are halted nothing can go on, and it is not ready. A
// process without a partition waits for one, and is ready.
func readinessOf(topic, file string, h processor.Health) readiness {
	halted := 0
	var lines []string
	for _, p := range h.Partitions {
		if p.State == processor.StateHalted {
			halted++
		}
		if p.State != processor.StateHalted && !p.Stuck {
			continue
		}
		line := fmt.Sprintf("%s/%d %v", topic, p.Partition, p)
		if p.Remedy != "" {
			line += "; " + named(p.Remedy, file)
		}
		lines = append(lines, line)
	}
	text := strings.Join(lines, "\n")
	switch {
	case len(lines) == 0:
		return readiness{true, "ok"}
	case halted == len(h.Partitions):
		return readiness{false, "halted: " + text}
	}
	return readiness{true, "degraded: " + text}
}

// gate knows whether the run has begun.
type gate struct{ begun atomic.Bool }

func (g *gate) hooks() processor.Hooks {
	return processor.Hooks{Polled: func(int) { g.begun.Store(true) }}
}

// ready returns the answer of /readyz during the run of ctx: nothing is ready
// before the first poll, nor once the run was asked to stop.
func (g *gate) ready(ctx context.Context, judge func() readiness) readiness {
	switch {
	case ctx.Err() != nil:
		return readiness{false, "stopping"}
	case !g.begun.Load():
		return readiness{false, "starting"}
	}
	return judge()
}
