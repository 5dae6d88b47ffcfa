package processortest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/twmb/franz-go/pkg/kadm"
)

const (
	// callTimeout bounds one helper's call. It is long because a loaded
	// machine with two cores is slow, not because a broker ever needs it.
	callTimeout = 30 * time.Second
	// minMetadataAge is how soon a client asks again for metadata.
	minMetadataAge = 50 * time.Millisecond
)

// CreateTopic creates a topic and waits until each of its partitions has a
// leader. configs are pairs of name and value, such as "cleanup.policy",
// "compact".
func (c *Client) CreateTopic(tb testing.TB, topic string, partitions int32, configs ...string) {
	tb.Helper()
	if len(configs)%2 != 0 {
		tb.Fatalf("processortest: create topic %s: configs are pairs of name and value, got %q", topic, configs)
	}
	values := map[string]*string{}
	for pair := range slices.Chunk(configs, 2) {
		values[pair[0]] = &pair[1]
	}
	c.admin(tb, func(ctx context.Context, adm *kadm.Client) {
		tb.Helper()
		if _, err := adm.CreateTopic(ctx, partitions, 1, values, topic); err != nil {
			tb.Fatalf("processortest: create topic %s: %v", topic, err)
		}
		waitLeaders(ctx, tb, adm, topic, int(partitions))
	})
}

// DeleteTopic deletes a topic. A topic created again under the same name gets
// another identity.
func (c *Client) DeleteTopic(tb testing.TB, topic string) {
	tb.Helper()
	c.admin(tb, func(ctx context.Context, adm *kadm.Client) {
		tb.Helper()
		if _, err := adm.DeleteTopic(ctx, topic); err != nil {
			tb.Fatalf("processortest: delete topic %s: %v", topic, err)
		}
	})
}

// AddPartitions adds partitions to a topic, add in number, and waits until each
// has a leader.
func (c *Client) AddPartitions(tb testing.TB, topic string, add int) {
	tb.Helper()
	c.admin(tb, func(ctx context.Context, adm *kadm.Client) {
		tb.Helper()
		before, err := adm.Metadata(ctx, topic)
		if err == nil {
			err = before.Topics.Error()
		}
		if err != nil {
			tb.Fatalf("processortest: add partitions to %s: %v", topic, err)
		}
		want := len(before.Topics[topic].Partitions) + add
		resps, err := adm.UpdatePartitions(ctx, want, topic)
		if err == nil {
			err = resps.Error()
		}
		if err != nil {
			tb.Fatalf("processortest: add %d partitions to %s: %v", add, topic, err)
		}
		waitLeaders(ctx, tb, adm, topic, want)
	})
}

// waitLeaders waits until topic has the number of partitions and each of them a
// leader. A controller answers a creation before the broker has led the first
// partition, and a record produced in between would be refused.
func waitLeaders(ctx context.Context, tb testing.TB, adm *kadm.Client, topic string, partitions int) {
	tb.Helper()
	err := retry(ctx, 20*time.Millisecond, func() error {
		starts, err := adm.ListStartOffsets(ctx, topic)
		if err == nil {
			err = starts.Error()
		}
		if err == nil && len(starts[topic]) != partitions {
			err = errFewPartitions
		}
		return err
	})
	if err != nil {
		tb.Fatalf("processortest: leaders of topic %s with %d partitions: %v", topic, partitions, err)
	}
}

// retry calls fn until it succeeds, fails for good or ctx ends, with a pause
// between the calls. When ctx ends, the error tells the last one of fn too.
func retry(ctx context.Context, pause time.Duration, fn func() error) error {
	var last error
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		last = fn()
		return struct{}{}, last
	}, backoff.WithBackOff(backoff.NewConstantBackOff(pause)), backoff.WithMaxElapsedTime(0))
	if err != nil && ctx.Err() != nil {
		return errors.Join(err, last)
	}
	return err
}
