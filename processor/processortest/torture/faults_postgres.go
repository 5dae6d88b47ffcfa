package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// Faults of the database server.
func postgresFaults() []Fault {
	return []Fault{
		{Row: 7, Name: "postgres-immediate", What: "PostgreSQL stopped at once, as in a power cut, and started", lane: services, strike: restartPostgres(embedded.StopImmediate)},
		{Row: 8, Name: "postgres-restart", What: "PostgreSQL restarted, away for some seconds", lane: services, strike: restartPostgres(embedded.StopFast)},
		{Row: 14, Name: "terminate-backends", What: "all sessions of the workers ended by the server, several times", lane: services, strike: terminateBackends},
		{Row: 37, Name: "restore", What: "PostgreSQL restored to some seconds ago, from a backup and its log", lane: services, strike: restore},
		{Row: 38, Name: "failover", What: "failover to a standby that misses the last commits, the old server still up for a while", lane: services, strike: failover},
	}
}

func restartPostgres(mode embedded.StopMode) func(context.Context, *world, *dice) (string, bool, error) {
	return func(ctx context.Context, w *world, d *dice) (string, bool, error) {
		away := time.Duration(d.IntN(4000)) * time.Millisecond
		if err := w.postgres.Stop(ctx, mode); err != nil {
			return "", false, err
		}
		_ = pause(ctx, away) // it is started also when the run is called off
		if err := w.postgres.Restart(context.WithoutCancel(ctx)); err != nil {
			return "", true, err
		}
		return fmt.Sprintf("away for %v", away), true, w.untilUp(ctx)
	}
}

func terminateBackends(ctx context.Context, w *world, _ *dice) (string, bool, error) {
	total := 0
	for range 3 {
		var ended int
		err := w.pool.QueryRow(ctx, `
			select count(pg_terminate_backend(pid)) from pg_stat_activity
			where pid <> pg_backend_pid() and backend_type = 'client backend' and application_name like 'oncestream%'`).Scan(&ended)
		if err != nil {
			return "", total > 0, err
		}
		total += ended
		if err := pause(ctx, time.Second); err != nil {
			return "", total > 0, err
		}
	}
	return fmt.Sprintf("%d sessions", total), total > 0, nil
}

func restore(ctx context.Context, w *world, d *dice) (string, bool, error) {
	backup, err := w.postgres.Backup(ctx)
	if err != nil {
		return "", false, err
	}
	point := fmt.Sprintf("torture_%d", d.Uint32())
	if err := w.postgres.RestorePoint(ctx, point); err != nil {
		return "", false, err
	}
	before, err := w.handled(ctx)
	if err != nil {
		return "", false, err
	}
	later, err := w.passes(ctx, before+1)
	if err != nil {
		return "", false, err
	}
	if err := w.postgres.Restore(context.WithoutCancel(ctx), backup, point); err != nil {
		return "", later > before, err
	}
	return fmt.Sprintf("%d records back", later-before), later > before, w.untilUp(ctx)
}

// passes waits until more has been handled, for a while, and then some seconds.
func (w *world) passes(ctx context.Context, at int64) (n int64, err error) {
	late := w.until(ctx, patience, "more to be handled", func(ctx context.Context) (bool, error) {
		n, err = w.handled(ctx)
		return err == nil && n >= at, nil
	})
	if late != nil {
		return n, nil // then the fault has struck nothing
	}
	if err := pause(ctx, 2*time.Second); err != nil {
		return n, err
	}
	return w.handled(ctx)
}

// failover moves everybody to a standby, the workers one by one: for a moment some
// of them write to a server that is not the one any more.
func failover(ctx context.Context, w *world, _ *dice) (string, bool, error) {
	standby, err := w.postgres.Standby(ctx)
	if err != nil {
		return "", false, err
	}
	old := w.postgres
	w.mu.Lock()
	w.old = append(w.old, old)
	w.mu.Unlock()
	if err := standby.Detach(ctx); err != nil {
		return "", false, err
	}
	before, err := w.handled(ctx)
	if err != nil {
		return "", false, err
	}
	lost, err := w.passes(ctx, before+1)
	if err != nil {
		return "", false, err
	}
	if err := standby.Promote(ctx); err != nil {
		return "", false, err
	}
	w.postgres = standby
	for _, worker := range w.workers {
		if err := worker.proxy.Move(standby.URL("")); err != nil {
			return "", true, err
		}
		worker.proxy.CutAll()
		if err := pause(ctx, 300*time.Millisecond); err != nil {
			return "", true, err
		}
	}
	if err := w.front.Move(standby.URL("")); err != nil {
		return "", true, err
	}
	w.front.CutAll()
	return fmt.Sprintf("%d records lost with the old server", lost-before), lost > before, w.untilUp(ctx)
}
