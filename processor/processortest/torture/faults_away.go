package torture

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Faults of the link between a worker and the brokers.
func kafkaLinkFaults() []Fault {
	return []Fault{
		{Row: 19, Name: "kafka-away", What: "one worker cut off from Kafka only, for longer than its session", Real: true, lane: services, strike: kafkaAway},
	}
}

// reachKafka takes a worker's link to the brokers up again.
func (w *world) reachKafka(victim *worker) error {
	if victim.number >= len(w.kafka.links) {
		return nil
	}
	return w.kafka.links[victim.number].accept(cutOffObstacle)
}

// cutOffFor is longer than a session of the group, and a rebalance.
const cutOffFor = 12 * time.Second

// kafkaAway cuts a worker off from the brokers. It still has the database, and
// must lose the right to write there: all its partitions become another's.
func kafkaAway(ctx context.Context, w *world, d *dice) (string, bool, error) {
	victim := w.one(d)
	p := victim.running(false)
	if p == nil || victim.number >= len(w.kafka.links) || !w.kafka.links[victim.number].leads() {
		return victim.name + " has no link of its own", false, nil
	}
	owner := fmt.Sprintf("%%/%d", p.Pid())
	before := 0
	late := w.until(ctx, patience, "partitions of its own", func(ctx context.Context) (bool, error) {
		var err error
		before, err = w.owned(ctx, owner)
		return err == nil && before > 0, nil
	})
	if late != nil {
		return victim.name + " has no partitions", false, ctx.Err()
	}
	w.kafka.links[victim.number].refuse(cutOffObstacle)
	err := pause(ctx, cutOffFor)
	after, ownedErr := w.owned(ctx, owner)
	err = errors.Join(err, w.reachKafka(victim), ownedErr)
	return fmt.Sprintf("%s for %v: %d partitions, then %d", victim.name, cutOffFor, before, after), before > 0 && after == 0, err
}

// owned is how many partitions an owner holds.
func (w *world) owned(ctx context.Context, owner string) (n int, err error) {
	err = w.pool.QueryRow(ctx, `select count(*) from oncestream.consumer_offset where owner like $1`, owner).Scan(&n)
	return n, err
}
