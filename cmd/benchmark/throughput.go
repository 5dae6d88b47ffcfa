//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// measureAll measures the parts that were asked for.
func measureAll(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	if o.pprof != "" {
		if err := os.MkdirAll(o.pprof, 0o755); err != nil {
			return err
		}
	}
	fmt.Fprintln(stderr, "starting PostgreSQL and a broker")
	m, err := openMachine(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	r, err := m.newReport(ctx)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name    string
		measure func(context.Context, *report, io.Writer) error
	}{{partThroughput, m.throughput}, {partLatency, m.latency}, {partScale, m.scale}, {partIdle, m.idle}} {
		if !slices.Contains(o.parts, part.name) {
			continue
		}
		if err := part.measure(ctx, r, stderr); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return r.write(stdout)
}

// throughput runs every contender in each round, every second round backwards.
func (m *machine) throughput(ctx context.Context, r *report, stderr io.Writer) error {
	const topic = "payments"
	if err := m.produce(ctx, topic, m.records, m.partitions); err != nil {
		return err
	}
	order := m.chosen()
	for round := range m.rounds {
		for _, c := range order {
			f, err := m.measure(ctx, job{contender: c, topic: topic, records: m.records, partitions: m.partitions}, round+1)
			if err != nil {
				return err
			}
			fmt.Fprintf(stderr, "round %d  %s\n", round+1, f.line())
			r.Throughput = append(r.Throughput, f)
		}
		slices.Reverse(order)
	}
	return nil
}

// latency runs once: it is an answer in milliseconds, not a ratio.
func (m *machine) latency(ctx context.Context, r *report, stderr io.Writer) error {
	const topic = "latency"
	if err := m.createTopic(ctx, topic, m.partitions); err != nil {
		return err
	}
	c := contender{name: "latency", part: 1}
	f, err := m.measure(ctx, job{contender: c, topic: topic, records: m.records, partitions: m.partitions}, 1)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "latency  p50 %v  p99 %v\n", f.P50, f.P99)
	r.Latency = &f
	return nil
}
