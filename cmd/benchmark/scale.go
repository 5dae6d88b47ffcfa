//go:build unix

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/oncestream/oncestream/processor"
)

// scalePart is which part of the records each of the many runs of scale has.
const scalePart = 5

// scale runs the product as 1, 2 and 4 processes of one group on 8, 64 and 1,000
// partitions.
func (m *machine) scale(ctx context.Context, r *report, stderr io.Writer) error {
	for _, partitions := range []int{8, 64, 1000} {
		topic := fmt.Sprintf("scale-%d", partitions)
		if err := m.produce(ctx, topic, m.records/scalePart, partitions); err != nil {
			return err
		}
		for _, processes := range []int{1, 2, 4} {
			c := contender{name: fmt.Sprintf("%dx%d", processes, partitions), part: scalePart, sinks: insertAlone, all: true}
			f, err := m.measure(ctx, job{
				contender: c, topic: topic, records: m.records / scalePart, partitions: partitions, processes: processes,
			}, 1)
			if err != nil {
				return err
			}
			fmt.Fprintf(stderr, "processes x partitions  %s\n", f.line())
			r.Scale = append(r.Scale, f)
		}
	}
	return nil
}

func (m *machine) createTopic(ctx context.Context, topic string, partitions int) error {
	p, err := processor.OpenPublisher(processor.Kafka{Brokers: m.broker.Addrs(), Topic: topic})
	if err != nil {
		return err
	}
	defer p.Close()
	return p.CreateTopic(ctx, int32(partitions)) //nolint:gosec // a topic has not that many
}
