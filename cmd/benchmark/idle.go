//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
)

// idleFigures are what a process costs that has partitions and no records.
type idleFigures struct {
	Partitions int `json:"partitions"`
	// Claimed is how long it took from the start to the last claim.
	Claimed time.Duration `json:"claimed_after_ns"`
	// Client and Server are shares of one core, of the process and of PostgreSQL.
	Client float64 `json:"go_cpu_share"`
	Server float64 `json:"postgres_cpu_share"`
	// Queries are executions a second, seen on the wire.
	Queries     float64 `json:"queries_per_second"`
	Connections int     `json:"connections"`
}

// idle watches the product with partitions that have no records.
func (m *machine) idle(ctx context.Context, r *report, stderr io.Writer) error {
	for _, partitions := range []int{8, 1000} {
		f, err := m.idleWith(ctx, partitions)
		if err != nil {
			return err
		}
		fmt.Fprintln(stderr, "idle ", f.line())
		r.Idle = append(r.Idle, f)
	}
	return nil
}

func (f idleFigures) line() string {
	return fmt.Sprintf("%4d partitions: claimed after %.1f s, Go %.2f %% of a core, PostgreSQL %.2f %%, %.1f queries/s, %d connections",
		f.Partitions, f.Claimed.Seconds(), 100*f.Client, 100*f.Server, f.Queries, f.Connections)
}

func (m *machine) idleWith(ctx context.Context, partitions int) (f idleFigures, err error) {
	topic := fmt.Sprintf("idle-%d", partitions)
	if err := m.createTopic(ctx, topic, partitions); err != nil {
		return f, err
	}
	database, err := m.database(ctx)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, m.drop(context.WithoutCancel(ctx), database)) }()
	proxy, err := pgproxy.Listen(m.postgres.URL(database))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	var queries atomic.Int64
	proxy.SetRule(func(msg pgproxy.Message) pgproxy.Action {
		if msg.ToServer && (msg.Kind == 'Q' || msg.Kind == 'E') {
			queries.Add(1)
		}
		return pgproxy.Pass
	})
	j := job{contender: contender{name: "idle", sinks: insertAlone}, topic: topic, database: database, group: topic}
	cmd, err := m.productCommand(ctx, j, proxy.URL())
	if err != nil {
		return f, err
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return f, err
	}
	f = idleFigures{Partitions: partitions}
	err = m.watchIdle(ctx, &f, cmd, j, &queries, started)
	if err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
		err = fmt.Errorf("%w\n%s", err, tail(complaint.Bytes()))
	}
	return f, err
}

func (m *machine) watchIdle(ctx context.Context, f *idleFigures, cmd *exec.Cmd, j job, queries *atomic.Int64, started time.Time) error {
	conn, err := pgx.Connect(ctx, m.postgres.URL(j.database))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := awaitClaims(ctx, conn, j, f.Partitions); err != nil {
		return err
	}
	f.Claimed = time.Since(started)
	if err := pause(ctx, settle); err != nil {
		return err
	}
	client, server, count, since, err := m.sample(cmd.Process.Pid, queries)
	if err != nil {
		return err
	}
	if err := pause(ctx, time.Duration(m.seconds)*time.Second); err != nil {
		return err
	}
	client2, server2, count2, until, err := m.sample(cmd.Process.Pid, queries)
	if err != nil {
		return err
	}
	seconds := until.Sub(since).Seconds()
	f.Client, f.Server = (client2-client).Seconds()/seconds, (server2-server).Seconds()/seconds
	f.Queries = float64(count2-count) / seconds
	return conn.QueryRow(ctx, "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()").Scan(&f.Connections)
}

// claimLimit is how long the claims may take.
const claimLimit = 90 * time.Second

// settle is the time after the last claim that is not looked at.
const settle = 5 * time.Second

func (m *machine) sample(pid int, queries *atomic.Int64) (client, server time.Duration, count int64, at time.Time, err error) {
	p, err := readProcess(pid)
	if err != nil {
		return 0, 0, 0, at, err
	}
	server, err = serverTime(m.postmaster)
	return time.Duration(p.own) * tick, server, queries.Load(), time.Now(), err
}

// awaitClaims waits until the process holds all partitions.
func awaitClaims(ctx context.Context, conn *pgx.Conn, j job, partitions int) error {
	ctx, cancel := context.WithTimeout(ctx, claimLimit)
	defer cancel()
	ledger := offsets.New(offsets.Options{Schema: ledgerSchema, Group: j.group, Topic: j.topic})
	for {
		progress, err := ledger.Progress(ctx, conn)
		if err != nil {
			return err
		}
		held := 0
		for _, p := range progress {
			if p.Owner != "" {
				held++
			}
		}
		if held == partitions {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d partitions are claimed: %w", held, partitions, err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
