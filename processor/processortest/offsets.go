package processortest

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

var errFewPartitions = errors.New("the broker does not know all partitions yet")

// DeleteRecords deletes the records of a partition below offset before, as
// retention does.
func (c *Client) DeleteRecords(tb testing.TB, topic string, partition int32, before int64) {
	tb.Helper()
	c.admin(tb, func(ctx context.Context, adm *kadm.Client) {
		tb.Helper()
		var at kadm.Offsets
		at.AddOffset(topic, partition, before, -1)
		resps, err := adm.DeleteRecords(ctx, at)
		if err == nil {
			err = resps.Error()
		}
		if err != nil {
			tb.Fatalf("processortest: delete records of %s/%d before %d: %v", topic, partition, before, err)
		}
	})
}

// StartOffset returns the offset of the first record that the partition still
// holds.
func (c *Client) StartOffset(tb testing.TB, topic string, partition int32) int64 {
	tb.Helper()
	return c.listOffset(tb, topic, partition, "start", (*kadm.Client).ListStartOffsets)
}

// EndOffset returns the offset that the partition's next record will get.
// Transaction markers take offsets too.
func (c *Client) EndOffset(tb testing.TB, topic string, partition int32) int64 {
	tb.Helper()
	return c.listOffset(tb, topic, partition, "end", (*kadm.Client).ListEndOffsets)
}

func (c *Client) listOffset(
	tb testing.TB, topic string, partition int32, which string,
	list func(*kadm.Client, context.Context, ...string) (kadm.ListedOffsets, error),
) (offset int64) {
	tb.Helper()
	c.admin(tb, func(ctx context.Context, adm *kadm.Client) {
		tb.Helper()
		listed, err := list(adm, ctx, topic)
		if err == nil {
			err = listed.Error()
		}
		at, ok := listed.Lookup(topic, partition)
		if err == nil && !ok {
			err = errFewPartitions
		}
		if err != nil {
			tb.Fatalf("processortest: %s offset of %s/%d: %v", which, topic, partition, err)
		}
		offset = at.Offset
	})
	return offset
}

// GroupOffset returns the offset that a consumer group has committed to Kafka,
// and whether it has committed any.
func (c *Client) GroupOffset(tb testing.TB, group, topic string, partition int32) (offset int64, ok bool) {
	tb.Helper()
	c.admin(tb, func(ctx context.Context, adm *kadm.Client) {
		tb.Helper()
		resps, err := adm.FetchOffsets(ctx, group)
		if errors.Is(err, kerr.GroupIDNotFound) {
			return // brokers from 4.0 on say so, older ones answer with nothing
		}
		if err != nil {
			tb.Fatalf("processortest: offsets of group %s: %v", group, err)
		}
		at, found := resps.Lookup(topic, partition)
		offset, ok = at.At, found && at.At >= 0
	})
	return offset, ok
}

// CommitGroupOffset commits an offset for a group that has no members, as an
// operator's tool would.
func (c *Client) CommitGroupOffset(tb testing.TB, group, topic string, partition int32, offset int64) {
	tb.Helper()
	c.admin(tb, func(ctx context.Context, adm *kadm.Client) {
		tb.Helper()
		var at kadm.Offsets
		at.AddOffset(topic, partition, offset, -1)
		if err := adm.CommitAllOffsets(ctx, group, at); err != nil {
			tb.Fatalf("processortest: commit %s/%d@%d for group %s: %v", topic, partition, offset, group, err)
		}
	})
}

// GroupMembers returns how many members a group of the classic protocol has,
// and its state ("Stable", "Empty", "Dead", …).
func (c *Client) GroupMembers(tb testing.TB, group string) (members int, state string) {
	tb.Helper()
	c.admin(tb, func(ctx context.Context, adm *kadm.Client) {
		tb.Helper()
		groups, err := adm.DescribeGroups(ctx, group)
		if err != nil {
			tb.Fatalf("processortest: describe group %s: %v", group, err)
		}
		members, state = len(groups[group].Members), groups[group].State
	})
	return members, state
}
