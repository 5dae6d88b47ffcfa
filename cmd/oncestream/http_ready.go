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

// trouble is a partition that does not move.
type trouble struct {
	partition int32
	halted    bool
	text      string // "halted: value_range" or "stuck for 5m0s: …"
}

// readinessOf judges the partitions that this process holds. A partition that is
// halted is no reason to restart the process, which would halt it again and stop
// the others: as long as one other goes on the answer is ready, and says
// "degraded". Where nothing can go on any more, and before the first poll and
// during the stop, it is not ready. A process that has no partition waits for one
// and is ready.
func readinessOf(topic string, held int, troubles []trouble) readiness {
	if len(troubles) == 0 {
		return readiness{true, "ok"}
	}
	halted := 0
	var lines []string
	for _, t := range troubles {
		if t.halted {
			halted++
		}
		lines = append(lines, fmt.Sprintf("%s/%d %s", topic, t.partition, t.text))
	}
	if halted == held {
		return readiness{false, "halted: " + strings.Join(lines, "\n")}
	}
	return readiness{true, "degraded: " + strings.Join(lines, "\n")}
}

// gate knows whether the run has begun.
type gate struct{ begun atomic.Bool }

func (g *gate) hooks() processor.Hooks {
	return processor.Hooks{Polled: func(int) { g.begun.Store(true) }}
}

// ready returns the answer of /readyz during the run of ctx.
func (g *gate) ready(ctx context.Context, topic string, b *board) func() readiness {
	return func() readiness {
		switch {
		case ctx.Err() != nil:
			return readiness{false, "stopping"}
		case !g.begun.Load():
			return readiness{false, "starting"}
		}
		held, troubles := b.troubles()
		return readinessOf(topic, held, troubles)
	}
}
