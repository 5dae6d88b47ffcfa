//go:build unix

package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// feed reads partitions from their beginning to the end that they have now,
// without a group.
type feed struct {
	client *kgo.Client
	topic  string
	left   map[int32]int64 // offsets still to read
}

// openFeed takes at most as many records of each partition as it is told, all
// where that is 0.
func openFeed(ctx context.Context, t target, partitions []int32, most int64) (*feed, error) {
	from := map[int32]kgo.Offset{}
	for _, p := range partitions {
		from[p] = kgo.NewOffset().At(0)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(t.brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.topic: from}))
	if err != nil {
		return nil, err
	}
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, t.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	f := &feed{client: client, topic: t.topic, left: map[int32]int64{}}
	for _, p := range partitions {
		n := ends[t.topic][p].Offset
		if most > 0 {
			n = min(n, most)
		}
		if n > 0 {
			f.left[p] = n
		}
	}
	return f, nil
}

// read hands on what is fetched until nothing is left. A partition's records come
// in order; last says that there are no more of it.
func (f *feed) read(ctx context.Context, take func(partition int32, records []*kgo.Record, last bool) error) error {
	for len(f.left) > 0 {
		fetches := f.client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		var err error
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			left, wanted := f.left[p.Partition]
			if !wanted || err != nil || len(p.Records) == 0 {
				return
			}
			records := p.Records[:min(int64(len(p.Records)), left)]
			f.left[p.Partition] -= int64(len(records))
			last := f.left[p.Partition] == 0
			if last {
				delete(f.left, p.Partition)
				f.client.PauseFetchPartitions(map[string][]int32{f.topic: {p.Partition}})
			}
			err = take(p.Partition, records, last)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// share returns the partitions of one worker of several.
func share(partitions, worker, workers int) []int32 {
	var mine []int32
	for p := worker; p < partitions; p += workers {
		mine = append(mine, int32(p)) //nolint:gosec // a topic has not that many
	}
	return mine
}

// runConsume only consumes: over one client, which is what the program has.
func runConsume(ctx context.Context, t target) (outcome, error) {
	f, err := openFeed(ctx, t, share(t.partitions, 0, 1), 0)
	if err != nil {
		return outcome{}, err
	}
	defer f.client.Close()
	started, n := time.Now(), int64(0)
	err = f.read(ctx, func(_ int32, records []*kgo.Record, _ bool) error {
		n += int64(len(records))
		return nil
	})
	return outcome{Records: n, Took: time.Since(started)}, err
}
