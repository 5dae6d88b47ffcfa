//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/sinks"
)

// latencies are the times from send to COMMIT, of records that are told apart by
// partition and offset. Which of the two is told first, the broker's answer to
// the producer or the COMMIT, is open.
type latencies struct {
	mu        sync.Mutex
	sent      map[position]time.Time
	committed map[position]time.Time
	list      []time.Duration
	claims    chan struct{} // one for each claim; has room for all
}

type position struct {
	partition int32
	offset    int64
}

func (l *latencies) send(p position, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if done, ok := l.committed[p]; ok {
		delete(l.committed, p)
		l.list = append(l.list, done.Sub(at))
		return
	}
	l.sent[p] = at
}

func (l *latencies) commit(b processor.BatchInfo) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for offset := b.From; offset < b.To; offset++ {
		p := position{b.Partition, offset}
		if at, ok := l.sent[p]; ok {
			delete(l.sent, p)
			l.list = append(l.list, now.Sub(at))
			continue
		}
		l.committed[p] = now
	}
}

func (l *latencies) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}

// runLatency sends records at a steady rate while the library, with its default
// settings, inserts them. The topic is empty at the start and only of this run.
func runLatency(ctx context.Context, t target) (outcome, error) {
	sink, err := insertSink(ctx, t.url)
	if err != nil {
		return outcome{}, err
	}
	l := &latencies{sent: map[position]time.Time{}, committed: map[position]time.Time{}, claims: make(chan struct{}, t.partitions)}
	p, err := processor.New(libraryConfig(t, processor.Hooks{
		Claimed:   func(string, offsets.Claim) { l.claims <- struct{}{} },
		Committed: l.commit,
	}), libraryPipeline(sink))
	if err != nil {
		return outcome{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }() // ends with ctx; its answer is waited for below
	sent, err := l.produce(ctx, t)
	if err == nil {
		err = l.await(ctx, sent)
	}
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return outcome{}, err
	}
	slices.Sort(l.list)
	n := len(l.list)
	return outcome{Records: int64(n), Took: time.Duration(t.seconds) * time.Second, P50: l.list[n/2], P99: l.list[n*99/100]}, nil
}

func insertSink(ctx context.Context, url string) (*sinks.Insert[schema.Row], error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	sink := &sinks.Insert[schema.Row]{Table: "payments", Fields: paymentFields(), KeyFields: []string{"event_id"}}
	return sink, sink.Prepare(ctx, conn)
}

// produce waits for the claims, sends for as long as it is told, and returns how
// many records that were.
func (l *latencies) produce(ctx context.Context, t target) (int, error) {
	for range t.partitions {
		select {
		case <-l.claims:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(t.brokers...), kgo.DefaultProduceTopic(t.topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	var failed error
	var once sync.Once
	began, sent := time.Now(), 0
	for now := began; now.Sub(began) < time.Duration(t.seconds)*time.Second; now = <-ticker.C {
		for due := int(now.Sub(began).Seconds() * float64(t.rate)); sent < due; sent++ {
			at := time.Now()
			client.Produce(ctx, latencyRecord(sent, t.partitions, at), func(r *kgo.Record, err error) {
				if err != nil {
					once.Do(func() { failed = err })
					return
				}
				l.send(position{r.Partition, r.Offset}, at)
			})
		}
	}
	return sent, errors.Join(client.Flush(ctx), failed)
}

func latencyRecord(n, partitions int, at time.Time) *kgo.Record {
	value := fmt.Sprintf(`{"event_id":"%s","customer_id":%d,"amount":%d.50,"currency":"EUR","method":"card","created_at":"%s","reference":"%064d"}`,
		uuid.New(), n%10_000+1, n%1000, at.UTC().Format("2006-01-02T15:04:05.000000Z07:00"), n)
	return &kgo.Record{Partition: int32(n % partitions), Value: []byte(value)} //nolint:gosec // a topic has not that many
}

// await waits until all that was sent is committed, for ten seconds at most.
func (l *latencies) await(ctx context.Context, sent int) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	limit := time.After(10 * time.Second)
	for l.count() < sent {
		select {
		case <-ticker.C:
		case <-limit:
			return fmt.Errorf("of %d records sent only %d were committed", sent, l.count())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
