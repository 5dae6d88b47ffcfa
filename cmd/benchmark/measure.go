//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
)

// figures are what one run of a contender has shown.
type figures struct {
	Contender string        `json:"contender"`
	Round     int           `json:"round"`
	Records   int64         `json:"records"`
	Took      time.Duration `json:"took_ns"`
	// Rate is records a second.
	Rate float64 `json:"records_per_second"`
	// Server and Client are microseconds of CPU a record: of PostgreSQL, and of
	// the contender's process.
	Server float64 `json:"postgres_cpu_us_per_record"`
	Client float64 `json:"go_cpu_us_per_record"`
	// Memory is the contender's largest resident memory in bytes.
	Memory int64 `json:"max_resident_bytes"`
	// P50 and P99 are set for latency only, in nanoseconds.
	P50 time.Duration `json:"p50_ns,omitempty"`
	P99 time.Duration `json:"p99_ns,omitempty"`
}

// measure runs a contender once, on a database of its own.
func (m *machine) measure(ctx context.Context, j job, round int) (f figures, err error) {
	if j.database, err = m.database(ctx); err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, m.drop(context.WithoutCancel(ctx), j.database)) }()
	j.group = fmt.Sprintf("%s-%d", j.name, m.databases)
	if m.pprof != "" {
		j.profile = filepath.Join(m.pprof, fmt.Sprintf("%s-%d.pprof", j.name, round))
	}
	before, err := serverTime(m.postmaster)
	if err != nil {
		return f, err
	}
	o, cost, err := m.runJob(ctx, j)
	if err != nil {
		return f, fmt.Errorf("%s: %w", j.name, err)
	}
	after, err := serverTime(m.postmaster)
	if err != nil {
		return f, err
	}
	n := float64(o.Records)
	f = figures{
		Contender: j.name, Round: round, Records: o.Records, Took: o.Took, Rate: n / o.Took.Seconds(), Memory: cost.memory,
		Server: float64((after - before).Microseconds()) / n, Client: float64(cost.cpu.Microseconds()) / n, P50: o.P50, P99: o.P99,
	}
	return f, m.checkRows(ctx, j)
}

// runJob runs the processes to their end.
func (m *machine) runJob(ctx context.Context, j job) (o outcome, c cost, err error) {
	all, err := m.commands(ctx, j)
	if err != nil {
		return o, c, err
	}
	var out, complaint bytes.Buffer
	for _, cmd := range all {
		cmd.Stdout, cmd.Stderr = &out, &complaint
		if len(all) > 1 { // two must not write to one buffer
			cmd.Stderr = nil
		}
		err = errors.Join(err, cmd.Start())
	}
	if err == nil && j.sinks != "" {
		o, err = m.watch(ctx, j)
	}
	for _, cmd := range all {
		if cmd.Process == nil {
			continue
		}
		if err != nil {
			_ = cmd.Process.Kill()
		}
		err = errors.Join(err, cmd.Wait())
		c.add(cmd)
	}
	if err != nil {
		return o, c, fmt.Errorf("%w\n%s", err, tail(complaint.Bytes()))
	}
	if j.sinks == "" {
		err = json.Unmarshal(out.Bytes(), &o)
	}
	return o, c, err
}

// tail is the end of what a process has complained of.
func tail(text []byte) string {
	const most = 2000
	return string(text[max(0, len(text)-most):])
}

// watchEvery is how often the ledger is looked at, and watchLimit for how long.
const (
	watchEvery = 10 * time.Millisecond
	watchLimit = 10 * time.Minute
)

// watch takes the time of the product by its ledger, from the first claim to the
// last offset.
func (m *machine) watch(ctx context.Context, j job) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, m.postgres.URL(j.database))
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	ledger := offsets.New(offsets.Options{Schema: ledgerSchema, Group: j.group, Topic: j.topic})
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var started time.Time
	for o.Records < int64(j.records) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return o, fmt.Errorf("after %d records: %w", o.Records, ctx.Err())
		}
		progress, err := ledger.Progress(ctx, conn)
		if err != nil {
			return o, err
		}
		var claimed bool
		o.Records, claimed = passed(progress)
		if claimed && started.IsZero() {
			started = time.Now()
		}
	}
	o.Took = time.Since(started)
	return o, nil
}

// passed sums up the records, and tells whether anything was claimed.
func passed(progress []offsets.Progress) (records int64, claimed bool) {
	for _, p := range progress {
		records += p.Records
		claimed = claimed || p.Epoch > 0
	}
	return records, claimed
}

// checkRows refuses a contender that was fast because it left something out.
func (m *machine) checkRows(ctx context.Context, j job) error {
	if !j.all {
		return nil
	}
	conn, err := pgx.Connect(ctx, m.postgres.URL(j.database))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var rows int
	if err := conn.QueryRow(ctx, "select count(*) from payments").Scan(&rows); err != nil {
		return err
	}
	if want := j.records - int(duplicateShare*float64(j.records)); rows != want {
		return fmt.Errorf("%s: the table has %d rows instead of %d", j.name, rows, want)
	}
	return nil
}

// duplicateShare is how many of the records of `oncestream produce` are repeats.
const duplicateShare = 0.05
