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
