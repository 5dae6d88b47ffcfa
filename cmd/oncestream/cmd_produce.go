package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// produceOptions are what the generator is asked for.
type produceOptions struct {
	brokers, topic string
	payments       payments
	rate           int
	json           bool
}

func (a *app) produceCommand() *cobra.Command {
	o := &produceOptions{}
	cmd := &cobra.Command{
		Use:   "produce",
		Short: "Send made-up payments, some of them twice",
		Long: `produce sends payments as JSON to a topic, for trials and measurements. The same
flags send the same records each time. A part of the records are repeats: the
same bytes again later, half of the time in another partition.

It creates the topic where there is none, waits until the brokers have
acknowledged every record, and prints how many were sent, how many are distinct,
and the exact sum of the amounts of the distinct ones: what the tables must
show.`,
		Example: `  oncestream produce --brokers 127.0.0.1:9092 --topic payments --records 1000000
  oncestream produce --topic payments --records 1000 --duplicates 0.2 --seed 7 --rate 100`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.produce(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.brokers, "brokers", "", "addresses of the brokers, host:port,… (environment: KAFKA_BROKERS)")
	f.StringVar(&o.topic, "topic", "payments", "the topic")
	f.IntVar(&o.payments.records, "records", 100_000, "how many records to send, repeats included")
	f.Float64Var(&o.payments.duplicates, "duplicates", 0.05, "which share of them are repeats")
	f.Uint64Var(&o.payments.seed, "seed", 1, "which payments; another seed gives other ones")
	f.IntVar(&o.payments.partitions, "partitions", 6, "partitions of the topic; where it exists, it must have at least as many")
	f.IntVar(&o.payments.size, "size", 200, "the least size of a record's value in bytes")
	f.BoolVar(&o.payments.random, "random-keys", false, "event ids without an order (UUIDv4) instead of time-ordered ones (UUIDv7)")
	f.IntVar(&o.rate, "rate", 0, "records a second, 0 for as many as possible")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return cmd
}

func (o *produceOptions) check() error {
	p := o.payments
	switch {
	case o.brokers == "":
		return usagef("--brokers (or KAFKA_BROKERS) is required: addresses host:port,…")
	case o.topic == "":
		return usagef("--topic must not be empty")
	case p.records < 1:
		return usagef("--records must be positive (got %d)", p.records)
	case p.duplicates < 0 || p.duplicates >= 1:
		return usagef("--duplicates must lie between 0 and 1, without 1 (got %g)", p.duplicates)
	case p.partitions < 1:
		return usagef("--partitions must be positive (got %d)", p.partitions)
	case o.rate < 0 || p.size < 0:
		return usagef("--rate and --size must not be negative")
	}
	return nil
}

func (a *app) produce(ctx context.Context, o *produceOptions) error {
	o.brokers = a.setting(o.brokers, "KAFKA_BROKERS", "")
	if err := o.check(); err != nil {
		return err
	}
	kafka := processor.Kafka{Brokers: splitList(o.brokers), Topic: o.topic}
	began := time.Now()
	t, err := a.publish(ctx, kafka, &o.payments, o.rate)
	if err != nil {
		return err
	}
	return a.printProduced(o, t, time.Since(began))
}

// publish creates the topic and sends all payments, and returns their tally.
func (a *app) publish(ctx context.Context, kafka processor.Kafka, p *payments, rate int) (*tally, error) {
	publisher, err := processor.OpenPublisher(kafka)
	if err != nil {
		return nil, err
	}
	defer publisher.Close()
	if err := publisher.CreateTopic(ctx, int32(p.partitions)); err != nil {
		return nil, err
	}
	t, bar, pace := newTally(), a.newProgress("sent", int64(p.records)), newPace(rate)
	for {
		batch := p.next(pace.step)
		if len(batch) == 0 {
			bar.finish()
			return t, nil
		}
		if err := send(ctx, publisher, t, batch); err != nil {
			return nil, err
		}
		bar.set(t.sent)
		if err := pace.wait(ctx, t.sent); err != nil {
			return nil, err
		}
	}
}

func send(ctx context.Context, publisher *processor.Publisher, t *tally, batch []schema.Record) error {
	if err := publisher.Publish(ctx, batch); err != nil {
		return err
	}
	return t.add(ctx, batch)
}

// pace keeps to a number of records a second.
type pace struct {
	rate, step int
	began      time.Time
}

func newPace(rate int) pace {
	p := pace{rate: rate, step: 5000, began: time.Now()}
	if rate > 0 {
		p.step = min(p.step, max(1, rate/20))
	}
	return p
}

// wait waits until the next records are due.
func (p pace) wait(ctx context.Context, sent int64) error {
	if p.rate == 0 {
		return ctx.Err()
	}
	due := p.began.Add(time.Duration(float64(sent) / float64(p.rate) * float64(time.Second)))
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *app) printProduced(o *produceOptions, t *tally, took time.Duration) error {
	sum := t.sum.Text('f')
	if o.json {
		return json.NewEncoder(a.stdout).Encode(map[string]any{
			"topic": o.topic, "sent": t.sent, "distinct": t.distinct, "duplicates": t.sent - t.distinct,
			"sum": sum, "seconds": took.Seconds(),
		})
	}
	_, err := fmt.Fprintf(a.stdout, "topic      %s\nsent       %s\ndistinct   %s\nduplicates %s\nsum        %s\n",
		o.topic, thousands(t.sent), thousands(t.distinct), thousands(t.sent-t.distinct), sum)
	return err
}
