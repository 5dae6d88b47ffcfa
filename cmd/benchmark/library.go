//go:build unix

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/sinks"
)

// libraryConfig is the configuration of a contender that uses the library: its
// defaults, wherever there are some.
func libraryConfig(t target, hooks processor.Hooks) processor.Config {
	return processor.Config{
		Group:    t.topic + "-library",
		Kafka:    processor.Kafka{Brokers: t.brokers, Topic: t.topic, Start: processor.Start{At: "earliest"}},
		Postgres: processor.Postgres{URL: t.url},
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Hooks:    hooks,
	}
}

// libraryPipeline hands each payment to a sink.
func libraryPipeline(sink processor.Sink[schema.Row]) processor.Pipeline[schema.Row] {
	return processor.Pipeline[schema.Row]{Decode: paymentDecoder(), Key: schema.AsUUID(schema.FieldPart("event_id")), Sink: sink}
}

// eachPayment is the user's code of one statement a message.
func eachPayment(ctx context.Context, tx pgx.Tx, m schema.Message[schema.Row]) error {
	args := make([]any, len(m.Body.Values))
	for i, v := range m.Body.Values {
		args[i] = string(v.Raw)
	}
	_, err := tx.Exec(ctx, `insert into payments (event_id, customer_id, amount, currency, method, created_at) values ($1, $2, $3, $4, $5, $6)`, args...)
	return err
}

// span is the time from the first claim to the last COMMIT.
type span struct {
	mu          sync.Mutex
	first, last time.Time
	records     int64
}

func (s *span) claimed(string, offsets.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first.IsZero() {
		s.first = time.Now()
	}
}

func (s *span) committed(b processor.BatchInfo) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	s.records += int64(b.Records)
	return s.records
}

// runEach runs the library with the user's code, over a part of the topic.
func runEach(ctx context.Context, t target) (outcome, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var s span
	p, err := processor.New(libraryConfig(t, processor.Hooks{
		Claimed: s.claimed,
		Committed: func(b processor.BatchInfo) {
			if s.committed(b) >= int64(t.records) {
				stop()
			}
		},
	}), libraryPipeline(sinks.Each(eachPayment)))
	if err != nil {
		return outcome{}, err
	}
	err = p.Run(ctx)
	if s.records < int64(t.records) {
		err = errors.Join(err, errors.New("stopped before the end"))
	}
	return outcome{Records: s.records, Took: s.last.Sub(s.first)}, err
}
