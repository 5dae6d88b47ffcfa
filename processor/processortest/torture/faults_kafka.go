package torture

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Faults of the broker.
func kafkaFaults() []Fault {
	return []Fault{
		{Row: 15, Name: "broker-restart", What: "the broker asked to stop, and started", Real: true, lane: services, strike: restartBroker(false)},
		{Row: 16, Name: "broker-kill", What: "kill -9 of the broker, and started", Real: true, lane: services, strike: restartBroker(true)},
		{Row: 21, Name: "heartbeats-lost", What: "the coordinator refuses heartbeats for longer than a session", Fake: true, lane: services, strike: loseHeartbeats},
		{Row: 34, Name: "open-transaction", What: "a transactional producer leaves its transaction open for some seconds, then it is aborted", lane: services, strike: openTransaction},
		{Row: 32, Name: "partitions-added", What: "partitions added under load, up to twice as many", lane: services, strike: addPartitions},
	}
}

func restartBroker(kill bool) func(context.Context, *world, *dice) (string, bool, error) {
	return func(ctx context.Context, w *world, d *dice) (string, bool, error) {
		away := time.Duration(d.IntN(3000)) * time.Millisecond
		n := d.IntN(len(w.kafka.real))
		stop := func() error { return w.kafka.real[n].Stop(ctx) }
		if kill {
			stop = w.kafka.real[n].Kill
		}
		if err := w.kafka.down(n, stop); err != nil {
			return "", false, err
		}
		_ = pause(ctx, away) // it is started also when the run is called off
		return fmt.Sprintf("away for %v", away), true, w.kafka.up(context.WithoutCancel(ctx), n)
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

// loseHeartbeats has the coordinator of the Kafka in this process answer that it
// is not there, until every session is over.
func loseHeartbeats(ctx context.Context, w *world, _ *dice) (string, bool, error) {
	var refused atomic.Int64
	until := time.Now().Add(asleep)
	for _, key := range []kmsg.Key{kmsg.Heartbeat, kmsg.ConsumerGroupHeartbeat} {
		w.kafka.fake.ControlKey(int16(key), func(request kmsg.Request) (kmsg.Response, error, bool) {
			if time.Now().After(until) {
				return nil, nil, false
			}
			w.kafka.fake.KeepControl()
			refused.Add(1)
			response := request.ResponseKind()
			switch r := response.(type) {
			case *kmsg.HeartbeatResponse:
				r.ErrorCode = kerr.CoordinatorNotAvailable.Code
			case *kmsg.ConsumerGroupHeartbeatResponse:
				r.ErrorCode = kerr.CoordinatorNotAvailable.Code
			}
			return response, nil, true
		})
	}
	err := pause(ctx, asleep)
	return fmt.Sprintf("%d heartbeats", refused.Load()), refused.Load() > 0, err
}

// openTransaction holds the last stable offset back.
func openTransaction(ctx context.Context, w *world, _ *dice) (string, bool, error) {
	client, err := w.kafka.client(kgo.TransactionalID("left open"), kgo.TransactionTimeout(30*time.Second))
	if err != nil {
		return "", false, err
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		return "", false, err
	}
	partitions := w.producer.partitions()
	for p := range partitions {
		client.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(p), Value: []byte(`{"id":"left open"}`)}, nil)
	}
	err = client.Flush(ctx)
	if err == nil {
		err = pause(ctx, 6*time.Second)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return fmt.Sprintf("%d partitions", partitions), true, errors.Join(err, client.EndTransaction(end, kgo.TryAbort))
}
