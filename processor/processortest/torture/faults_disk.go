package torture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// diskRoom is the size of the database's own disk, in bytes; what is not used takes
// no memory.
const diskRoom = 4 << 30

// Faults of the database's disk.
func diskFaults() []Fault {
	return []Fault{
		{Row: 28, Name: "disk-full", What: "no space for the tables of PostgreSQL for some seconds", Needs: "root on Linux", lacks: lackRoom, lane: services, strike: fillDisk},
		{Row: 28, Name: "wal-full", What: "no space for the log of PostgreSQL, which goes down", Needs: "root on Linux", lacks: lackRoom, lane: services, strike: fillLog},
	}
}

func lackRoom() string {
	if err := embedded.RoomProblem(); err != nil {
		return "PostgreSQL can have no disk of its own here: " + err.Error()
	}
	return ""
}

// noSpace is how PostgreSQL says that the disk is full.
const noSpace = "No space left on device"

// fillDisk leaves no space until sessions have met that, and for a moment longer.
func fillDisk(ctx context.Context, w *world, _ *dice) (string, bool, error) {
	return w.full(ctx, func(context.Context) error { return nil })
}

// fillLog has PostgreSQL begin new files of its log until there is no space for
// one: it goes down, and cannot even recover.
func fillLog(ctx context.Context, w *world, _ *dice) (string, bool, error) {
	return w.full(ctx, func(ctx context.Context) error {
		url, ended := w.postgres.URL(""), fmt.Errorf("PostgreSQL has found space for its log %v long", patience)
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		conn, err := pgx.Connect(limited, url)
		for err == nil {
			_, err = conn.Exec(limited, "select pg_switch_wal() from pg_logical_emit_message(true, 'torture', 'more')")
		}
		if limited.Err() != nil {
			return ended
		}
		return nil
	})
}

// full fills the disk, does something, and frees it.
func (w *world) full(ctx context.Context, do func(context.Context) error) (string, bool, error) {
	before := strings.Count(w.postgres.LogTail(noLimit), noSpace)
	if err := w.postgres.Fill(); err != nil {
		return "", false, err
	}
	err := do(ctx)
	met := 0
	late := w.until(ctx, patience, "the disk to be too small", func(context.Context) (bool, error) {
		met = strings.Count(w.postgres.LogTail(noLimit), noSpace) - before
		return met > 0, nil
	})
	if late == nil {
		_ = pause(ctx, 4*time.Second) // it is freed also when the run is called off
	}
	ctx = context.WithoutCancel(ctx)
	err = errors.Join(err, w.postgres.Free())
	if err == nil && w.pool.Ping(ctx) != nil {
		err = w.postgres.Restart(ctx) // it may have ended, or be about to
	}
	if err == nil {
		err = w.untilUp(ctx)
	}
	return fmt.Sprintf("met %d times", met), late == nil, err
}

// noLimit is more lines than any log has.
const noLimit = 1 << 30
