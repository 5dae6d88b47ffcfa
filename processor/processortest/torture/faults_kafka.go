package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Faults of the broker.
func kafkaFaults() []Fault {
	return []Fault{
		{Row: 15, Name: "broker-restart", What: "the broker asked to stop, and started", Real: true, lane: services, strike: restartBroker(false)},
		{Row: 16, Name: "broker-kill", What: "kill -9 of the broker, and started", Real: true, lane: services, strike: restartBroker(true)},
		{Row: 32, Name: "partitions-added", What: "partitions added under load, up to twice as many", lane: services, strike: addPartitions},
	}
}

func restartBroker(kill bool) func(context.Context, *world, *dice) (string, bool, error) {
	return func(ctx context.Context, w *world, d *dice) (string, bool, error) {
		away := time.Duration(d.IntN(3000)) * time.Millisecond
		stop := func() error { return w.kafka.real.Stop(ctx) }
		if kill {
			stop = w.kafka.real.Kill
		}
		if err := stop(); err != nil {
			return "", false, err
		}
		_ = pause(ctx, away) // it is started also when the run is called off
		return fmt.Sprintf("away for %v", away), true, w.kafka.real.Restart(context.WithoutCancel(ctx))
	}
}

// addPartitions adds one partition at a time, up to twice what there was. The
// producer sends to the new ones from then on.
func addPartitions(ctx context.Context, w *world, _ *dice) (string, bool, error) {
	more := w.producer.partitions() + 1
	if more > 2*w.Partitions {
		return "there are enough", true, nil
	}
	err := w.kafka.admin(func(adm *kadm.Client) error {
		answer, err := adm.CreatePartitions(ctx, 1, topic)
		if err == nil {
			err = answer.Error()
		}
		return err
	})
	if err != nil {
		return "", false, err
	}
	return fmt.Sprintf("%d partitions", more), true, w.producer.use(ctx, w, more)
}
