package processortest

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/schema"
)

// Client has the helpers that tests use on any broker. It holds no connection:
// each call opens its own and closes it, so that a broker killed, restarted or
// emptied between two calls leaves no stale state behind, and a test for leaked
// goroutines finds none.
type Client struct {
	addrs []string
}

// NewClient returns a Client of the brokers at addrs ("host:port").
func NewClient(addrs ...string) *Client { return &Client{addrs: addrs} }

// Addrs returns the bootstrap addresses, each "host:port".
func (c *Client) Addrs() []string { return append([]string(nil), c.addrs...) }

// Admin returns an admin client that is closed when the test ends, for what the
// helpers here do not cover.
func (c *Client) Admin(tb testing.TB) *kadm.Client {
	tb.Helper()
	k := c.dial(tb)
	tb.Cleanup(k.Close)
	return kadm.NewClient(k)
}

// dial returns a connection that the caller closes.
func (c *Client) dial(tb testing.TB, opts ...kgo.Opt) *kgo.Client {
	tb.Helper()
	k, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(c.addrs...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		// A test waits for each call: lingering would only add to it.
		kgo.ProducerLinger(0),
		// Metadata is asked for at once after a topic was created.
		kgo.MetadataMinAge(minMetadataAge),
	}, opts...)...)
	if err != nil {
		tb.Fatalf("processortest: client of %v: %v", c.addrs, err)
	}
	return k
}

// admin runs fn on a short-lived admin client.
func (c *Client) admin(tb testing.TB, fn func(ctx context.Context, adm *kadm.Client)) {
	tb.Helper()
	k := c.dial(tb)
	defer k.Close()
	ctx, cancel := context.WithTimeout(tb.Context(), callTimeout)
	defer cancel()
	fn(ctx, kadm.NewClient(k))
}

// Produce writes records to one partition in their order, waits until all are
// acknowledged and returns their offsets. Of a record only Key, Value, Headers
// and Time are read; a zero Time is the present.
func (c *Client) Produce(tb testing.TB, topic string, partition int32, records ...schema.Record) []int64 {
	tb.Helper()
	k := c.dial(tb)
	defer k.Close()
	return produce(tb, k, topic, partition, records)
}

// Values returns one record without a key for each value, for [Client.Produce].
func Values(values ...string) []schema.Record {
	records := make([]schema.Record, len(values))
	for i, v := range values {
		records[i].Value = []byte(v)
	}
	return records
}

func produce(tb testing.TB, k *kgo.Client, topic string, partition int32, records []schema.Record) []int64 {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), callTimeout)
	defer cancel()
	sent := make([]*kgo.Record, len(records))
	for i := range records {
		sent[i] = toKafka(topic, partition, &records[i])
	}
	if err := k.ProduceSync(ctx, sent...).FirstErr(); err != nil {
		tb.Fatalf("processortest: produce %d records to %s/%d: %v", len(records), topic, partition, err)
	}
	offsets := make([]int64, len(sent))
	for i, r := range sent {
		offsets[i] = r.Offset
	}
	return offsets
}

func toKafka(topic string, partition int32, r *schema.Record) *kgo.Record {
	k := &kgo.Record{Topic: topic, Partition: partition, Key: r.Key, Value: r.Value, Timestamp: r.Time}
	for _, h := range r.Headers {
		k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return k
}
