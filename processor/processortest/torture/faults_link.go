package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
)

// nothing is a link without a fault.
var nothing = pgproxy.Link{}

// Faults of the link between a worker and the database.
func linkFaults() []Fault {
	return []Fault{
		{Row: 9, Name: "commit-cut-before", What: "connection cut before COMMIT reaches the server", lane: services, strike: atCommit(pgproxy.Message.Commits, pgproxy.CutBefore)},
		{Row: 10, Name: "commit-cut-after", What: "cut after the server committed, before the answer", lane: services, strike: atCommit(pgproxy.Message.Committed, pgproxy.CutBefore)},
		{Row: 11, Name: "commit-cut-inside", What: "COMMIT cut in the middle of the message", lane: services, strike: atCommit(pgproxy.Message.Commits, pgproxy.CutInside)},
		{Row: 12, Name: "commit-answer-held", What: "the answer to COMMIT held back, and the link cut while it is", lane: services, strike: atCommit(pgproxy.Message.Committed, pgproxy.Action{Hold: 4 * time.Second, Cut: pgproxy.CutBeforeMessage})},
		{Row: 13, Name: "reset", What: "all connections of a worker reset, several times", lane: services, strike: resets},
		{Row: 20, Name: "postgres-away", What: "one worker cut off from PostgreSQL for some seconds", lane: services, strike: cutOff},
		{Row: 22, Name: "slow-link", What: "messages delayed and sent in slices", lane: services, strike: slowLink},
	}
}

// atCommit strikes one COMMIT of a worker.
func atCommit(is func(pgproxy.Message) bool, action pgproxy.Action) func(context.Context, *world, *dice) (string, bool, error) {
	return func(ctx context.Context, w *world, d *dice) (string, bool, error) {
		victim := w.one(d)
		struck := make(chan struct{})
		mine := action
		mine.Do = func() {
			victim.struck()
			close(struck)
		}
		victim.strike(once(is, mine))
		hit := await(ctx, struck)
		victim.strike(nil)
		return victim.name, hit, nil
	}
}

func resets(ctx context.Context, w *world, d *dice) (string, bool, error) {
	victim, total := w.one(d), 0
	for range 3 {
		total += victim.proxy.CutAll()
		if err := pause(ctx, time.Duration(200+d.IntN(800))*time.Millisecond); err != nil {
			return "", total > 0, err
		}
	}
	return fmt.Sprintf("%s, %d connections", victim.name, total), total > 0, nil
}

func cutOff(ctx context.Context, w *world, d *dice) (string, bool, error) {
	victim, away := w.one(d), time.Duration(2+d.IntN(8))*time.Second
	victim.proxy.Down()
	err := pause(ctx, away)
	victim.proxy.Up()
	return fmt.Sprintf("%s for %v", victim.name, away), true, err
}

func slowLink(ctx context.Context, w *world, d *dice) (string, bool, error) {
	victim := w.one(d)
	link := pgproxy.Link{Latency: time.Duration(1+d.IntN(20)) * time.Millisecond, Slice: 1 + d.IntN(200)}
	victim.proxy.SetLink(link)
	err := pause(ctx, 4*time.Second)
	victim.proxy.SetLink(nothing)
	return fmt.Sprintf("%s, %v a message, %d bytes a slice", victim.name, link.Latency, link.Slice), true, err
}
