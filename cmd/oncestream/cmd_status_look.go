package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// readStatus asks the brokers and the ledger for positions and accounts.
func readStatus(ctx context.Context, c *config) (status, error) {
	s := status{Group: c.name, Topic: c.engine.Kafka.Topic}
	topic, err := processor.InspectTopic(ctx, c.engine.Kafka)
	if err != nil {
		return s, err
	}
	err = withLedger(ctx, c, func(conn *pgx.Conn, ledger *offsets.Ledger) error {
		progress, err := ledger.Progress(ctx, conn)
		s.fill(topic, progress)
		return err
	})
	return s, err
}

func everyPartition(int32) bool { return true }

// observe is readStatus with what an operator wants to know besides: the drift,
// the forecast of the partitions that are asked for, and the oldest transaction.
// Kafka's own offsets are read before the ledger: what moves in between must not
// look as if Kafka were ahead.
//
// What need not be known is left out where it cannot be learned: Kafka's offsets,
// and the transactions of a database that only speaks PostgreSQL's protocol.
func observe(ctx context.Context, c *config, lookout *processor.Lookout, asked func(int32) bool) (status, error) {
	s := status{Group: c.name, Topic: c.engine.Kafka.Topic}
	topic, err := lookout.Topic(ctx)
	if err != nil {
		return s, err
	}
	kafka, kafkaErr := lookout.KafkaOffsets(ctx, c.name)
	var now time.Time
	err = withLedger(ctx, c, func(conn *pgx.Conn, ledger *offsets.Ledger) error {
		progress, err := ledger.Progress(ctx, conn)
		if err != nil {
			return err
		}
		s.fill(topic, progress)
		if t, _, err := ledger.OldestTransaction(ctx, conn); err == nil {
			s.transaction = &t
			s.Oldest = describe(t, c.watch.transaction)
		}
		now, err = ledger.Now(ctx, conn)
		return err
	})
	if err != nil {
		return s, err
	}
	if kafkaErr == nil {
		s.compare(kafka)
	}
	return s, s.predict(ctx, lookout, topic, now, asked)
}

// compare compares the stored offsets with Kafka's.
func (s *status) compare(kafka map[int32]int64) {
	for i := range s.Partitions {
		p := &s.Partitions[i]
		if at, ok := kafka[p.Partition]; ok && p.Next != nil {
			drift := at - *p.Next
			p.Drift = &drift
		}
	}
}

// predict asks for the forecasts.
func (s *status) predict(ctx context.Context, lookout *processor.Lookout, topic processor.Topic, now time.Time, asked func(int32) bool) error {
	next := map[int32]int64{}
	for _, p := range s.Partitions {
		if p.Next != nil && asked(p.Partition) {
			next[p.Partition] = *p.Next
		}
	}
	forecasts, err := lookout.Forecasts(ctx, topic, next, now)
	if err != nil {
		return err
	}
	byPartition := map[int32]processor.Forecast{}
	for _, f := range forecasts {
		byPartition[f.Partition] = f
	}
	for i := range s.Partitions {
		if f, ok := byPartition[s.Partitions[i].Partition]; ok {
			s.Partitions[i].predicted(f)
		}
	}
	return nil
}

func (p *partitionStatus) predicted(f processor.Forecast) {
	p.forecast, p.Retention = &f, &forecastStatus{Outlook: f.Outlook, Lost: f.Lost, Why: f.Why}
	if f.Outlook == processor.OutlookDue {
		seconds := f.Remaining.Seconds()
		p.Retention.RemainingSeconds = &seconds
	}
}

// describe describes a transaction that is as old as the limit, and nil a younger
// one: every batch is a transaction for a moment.
func describe(t offsets.Transaction, limit time.Duration) *transactionStatus {
	if t.Kind == "" || t.Age < limit {
		return nil
	}
	return &transactionStatus{t.Kind, t.PID, t.Name, t.User, t.Application, t.State, t.Age.Seconds(), t.DeadRows, t.String()}
}
