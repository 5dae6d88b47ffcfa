package torture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// Faults of the topic as a whole.
func topicFaults() []Fault {
	return []Fault{
		{Row: 31, Name: "topic-recreated", What: "the topic deleted and created again; the halts resolved by the printed command", lane: services, strike: recreateTopic},
	}
}

// recreateTopic deletes the topic while there may be a backlog, and creates it
// again. No partition may go on in the new one until it is told to.
func recreateTopic(ctx context.Context, w *world, _ *dice) (string, bool, error) {
	w.changes.Lock()
	defer w.changes.Unlock()
	if err := errors.Join(w.settle(ctx), w.awaitPositions(ctx)); err != nil {
		return "", false, err
	}
	partitions, err := w.replaceTopic(ctx)
	if err != nil {
		return "", false, err
	}
	for p := range int32(partitions) {
		h := check.Halt{Partition: p, Code: "topic_recreated"}
		var err error
		if h.At, err = w.awaitHalt(ctx, &h); err != nil {
			return "", true, err
		}
		w.halted(h)
	}
	err = w.command(ctx, "offsets", "adopt", w.workers[0].file, "--to-offset", "earliest", "--reason", "torture: the topic was created again", "--yes")
	return fmt.Sprintf("%d partitions", partitions), true, err
}

// awaitPositions waits until the ledger knows every partition: one that was added
// just now has no position yet that could be of another topic.
func (w *world) awaitPositions(ctx context.Context) error {
	return w.until(ctx, time.Minute, "a position of each partition", func(ctx context.Context) (bool, error) {
		var n int
		err := w.pool.QueryRow(ctx, `select count(*) from oncestream.consumer_offset`).Scan(&n)
		return err == nil && n == w.producer.partitions(), nil
	})
}

// replaceTopic reads the topic to its end, and puts an empty one in its place. The
// producer goes on with that one.
func (w *world) replaceTopic(ctx context.Context) (partitions int, err error) {
	release, err := w.producer.hold(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	if err := w.readLog(ctx); err != nil {
		return 0, err
	}
	if err := w.deleteTopic(ctx); err != nil {
		return 0, err
	}
	partitions = w.producer.partitions()
	err = w.until(ctx, electing, "the topic to be created again", func(ctx context.Context) (bool, error) {
		err := w.createTopic(ctx, partitions)
		if errors.Is(err, kerr.TopicAlreadyExists) { // it goes by and by
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return 0, err
	}
	for p := range int32(partitions) {
		w.newLog(p, 0)
	}
	return partitions, w.producer.reopen()
}

func (w *world) deleteTopic(ctx context.Context) error {
	return w.kafka.admin(func(adm *kadm.Client) error {
		answer, err := adm.DeleteTopic(ctx, topic)
		return errors.Join(err, answer.Err)
	})
}
