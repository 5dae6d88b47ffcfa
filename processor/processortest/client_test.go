package processortest_test

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
)

// A record arrives at the broker with everything that the helper was given, and
// a missing value (a tombstone) differs from an empty one.
func TestProduceKeepsRecords(t *testing.T) {
	c := processortest.Kafka(t, processortest.WithTopic(2, "t"))
	at := time.UnixMilli(1_700_000_000_123)
	offsets := c.Produce(t, "t", 1,
		schema.Record{
			Key: []byte("k"), Value: []byte("v"), Time: at,
			Headers: []schema.Header{{Key: "h", Value: []byte("1")}, {Key: "h"}},
		},
		schema.Record{Value: []byte{}},
		schema.Record{Key: []byte("gone")},
	)
	if want := []int64{0, 1, 2}; !slices.Equal(offsets, want) {
		t.Fatalf("offsets %v, want %v", offsets, want)
	}
	got := read(t, c.Client, "t", 1, 3)
	if r := got[0]; string(r.Key) != "k" || string(r.Value) != "v" || !r.Timestamp.Equal(at) {
		t.Errorf("first record: key %q value %q time %v", r.Key, r.Value, r.Timestamp)
	}
	headers := []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "h"}}
	if diff := cmp.Diff(headers, got[0].Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if got[1].Value == nil || len(got[1].Value) != 0 {
		t.Errorf("empty value became %#v", got[1].Value)
	}
	if got[2].Value != nil {
		t.Errorf("tombstone became %#v", got[2].Value)
	}
}

// The helpers for topics, offsets and transactions do what they say; the same
// steps run on a real broker under the build tag broker.
func TestHelpersOnKfake(t *testing.T) {
	helpers(t, processortest.Kafka(t).Client)
}

func helpers(t *testing.T, c *processortest.Client) {
	t.Run("topics", func(t *testing.T) { topicHelpers(t, c) })
	t.Run("offsets", func(t *testing.T) { offsetHelpers(t, c) })
	t.Run("transactions", func(t *testing.T) { transactionHelpers(t, c) })
}

// unique makes a name that no other run uses: a broker may be shared.
func unique(name string) string { return name + "-" + rand.Text() }

func topicHelpers(t *testing.T, c *processortest.Client) {
	topic := unique("topics")
	c.CreateTopic(t, topic, 2, "cleanup.policy", "compact", "segment.ms", "1000")
	configs, err := c.Admin(t).DescribeTopicConfigs(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if got := config(configs, "cleanup.policy") + " " + config(configs, "segment.ms"); got != "compact 1000" {
		t.Errorf("configs %q", got)
	}
	c.AddPartitions(t, topic, 3)
	c.Produce(t, topic, 4, schema.Record{Key: []byte("k"), Value: []byte("in the last partition")})
	before := topicID(t, c, topic)
	c.DeleteTopic(t, topic)
	c.CreateTopic(t, topic, 1)
	if after := topicID(t, c, topic); after == before {
		t.Errorf("the topic created again kept its identity %v", after)
	}
	if end := c.EndOffset(t, topic, 0); end != 0 {
		t.Errorf("the topic created again ends at %d", end)
	}
}

func config(resources kadm.ResourceConfigs, key string) string {
	for _, r := range resources {
		for _, c := range r.Configs {
			if c.Key == key {
				return c.MaybeValue()
			}
		}
	}
	return ""
}

func topicID(t *testing.T, c *processortest.Client, topic string) kadm.TopicID {
	t.Helper()
	topics, err := c.Admin(t).ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return topics[topic].ID
}

func offsetHelpers(t *testing.T, c *processortest.Client) {
	topic, somebody := unique("offsets"), unique("somebody")
	c.CreateTopic(t, topic, 1)
	c.Produce(t, topic, 0, processortest.Values("a", "b", "c", "d")...)
	c.DeleteRecords(t, topic, 0, 3)
	if start, end := c.StartOffset(t, topic, 0), c.EndOffset(t, topic, 0); start != 3 || end != 4 {
		t.Errorf("start %d end %d, want 3 and 4", start, end)
	}
	if at, ok := c.GroupOffset(t, unique("nobody"), topic, 0); ok {
		t.Errorf("a group that never committed is at %d", at)
	}
	c.CommitGroupOffset(t, somebody, topic, 0, 2)
	if at, ok := c.GroupOffset(t, somebody, topic, 0); !ok || at != 2 {
		t.Errorf("committed offset %d %v, want 2", at, ok)
	}
	if members, state := c.GroupMembers(t, somebody); members != 0 || state != "Empty" {
		t.Errorf("group has %d members and is %s, want 0 and Empty", members, state)
	}
}

func transactionHelpers(t *testing.T, c *processortest.Client) {
	topic := unique("transactions")
	c.CreateTopic(t, topic, 1)
	aborted := c.Begin(t, unique("tx-aborted"))
	aborted.Produce(t, topic, 0, processortest.Values("never", "seen")...)
	aborted.Abort(t)
	committed := c.Begin(t, unique("tx-committed"))
	committed.Produce(t, topic, 0, processortest.Values("seen")...)
	committed.Commit(t)
	open := c.Begin(t, unique("tx-open"))
	open.Produce(t, topic, 0, processortest.Values("undecided")...)
	got := read(t, c, topic, 0, 1)
	if string(got[0].Value) != "seen" || got[0].Offset != 3 {
		t.Errorf("first committed record is %q at %d, want \"seen\" at 3", got[0].Value, got[0].Offset)
	}
	// Two aborted records and a marker, one record and a marker, one undecided.
	if end := c.EndOffset(t, topic, 0); end != 6 {
		t.Errorf("end offset %d, want 6", end)
	}
	open.Commit(t)
	if got := read(t, c, topic, 0, 2); string(got[1].Value) != "undecided" {
		t.Errorf("second committed record is %q", got[1].Value)
	}
}

// read returns the first n committed records of a partition.
func read(t *testing.T, c *processortest.Client, topic string, partition int32, n int) []*kgo.Record {
	t.Helper()
	k, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var records []*kgo.Record
	for len(records) < n {
		fetches := k.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read %s/%d: have %d of %d records: %v", topic, partition, len(records), n, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records
}
