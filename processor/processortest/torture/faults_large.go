package torture

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// The sizes of large values, in bytes: a little less than brokers take by default,
// and what the topic of a run takes at most.
const (
	large   = 1_000_000
	largest = 20 << 20
)

// Faults that are records.
func recordFaults() []Fault {
	return []Fault{
		{Row: 36, Name: "large-values", What: "values of 1 and of 20 MB, a good one with a field that nobody reads and a poison one of each", lane: services, strike: largeValues},
	}
}

// largeValues sends large records and waits until they are passed; the good ones
// must have their effects, and the poison ones be dead letters: too large to be
// kept, and named by their position.
func largeValues(ctx context.Context, w *world, d *dice) (string, bool, error) {
	p := int32(d.IntN(w.Partitions))
	last, err := w.producer.sendLarge(ctx, p)
	if err != nil {
		return "", false, err
	}
	late := w.until(ctx, 3*patience, "large values to be handled", func(ctx context.Context) (bool, error) {
		next, err := w.stands(ctx, p)
		return err == nil && next > last, nil
	})
	if late != nil && ctx.Err() != nil {
		return "", false, late
	}
	return fmt.Sprintf("partition %d, up to offset %d", p, last), late == nil, nil
}

// sendLarge returns the offset of the last one.
func (p *producer) sendLarge(ctx context.Context, partition int32) (last int64, err error) {
	client, err := p.kafka.client(kgo.ProducerBatchMaxBytes(largest + 1<<20))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for _, size := range []int{large, largest} {
		for _, poison := range []string{"", "decode"} {
			payload := p.large(size, poison)
			sent, err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: partition, Key: []byte("large"), Value: payload}).First()
			if err != nil {
				return 0, err
			}
			last = sent.Offset
		}
	}
	return last, nil
}

// large makes a value of about the size. A poison one ends too early, which is
// known only after all of it was read.
func (p *producer) large(size int, poison string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := check.Record{ID: p.workload.id(), Entity: "large", Seq: 1, From: "account-0", To: "account-1", Amount: "1.00", Currency: "EUR"}
	good := string(body(r))
	payload := good[:len(good)-1] + `,"ignored":"` + strings.Repeat("x", size-len(good)-100) + `"`
	if poison == "" {
		return []byte(payload + "}")
	}
	p.poison[payload] = poison
	return []byte(payload)
}
