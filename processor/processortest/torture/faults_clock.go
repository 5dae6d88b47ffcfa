package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Faults of the clocks.
func clockFaults() []Fault {
	return []Fault{
		{Row: 27, Name: "clock-jump", What: "the clock of PostgreSQL an hour ahead for some seconds, and then an hour behind", Needs: "libfaketime", lacks: lackClock, lane: services, strike: jumpClock},
	}
}

// clockLibrary is where the library is that PostgreSQL's calls for the time go to,
// empty where there is none.
func clockLibrary() string {
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1", "/usr/lib64/faketime/libfaketime.so.1"} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

func lackClock() string {
	if runtime.GOOS != "linux" || clockLibrary() == "" {
		return "the clock of a process cannot be set here: install libfaketime (the package faketime)"
	}
	return ""
}

// clockEnvironment has a server read the clock by way of the library, and how far
// it is off from a file.
func clockEnvironment(file string) []string {
	return []string{
		"LD_PRELOAD=" + clockLibrary(), "FAKETIME_TIMESTAMP_FILE=" + file, "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
	}
}

// clockFile says how far the clock is off.
func (w *world) clockFile() string { return filepath.Join(w.clocks, "off") }

// setClock sets how far the clock is off. The file is put in its place whole: it
// is read all the time.
func (w *world) setClock(off string) error {
	next := w.clockFile() + ".next"
	return errors.Join(os.WriteFile(next, []byte(off+"\n"), 0o644), os.Rename(next, w.clockFile()))
}

// jumpClock has the time jump forth and back. Nothing but the age of a key is
// measured by it, and keys are kept for longer than it jumps.
func jumpClock(ctx context.Context, w *world, _ *dice) (string, bool, error) {
	var jumps []string
	for _, off := range []string{"+1h", "-1h", "+0"} {
		if err := w.setClock(off); err != nil {
			return "", false, err
		}
		_ = pause(ctx, 5*time.Second) // it is set right also when the run is called off
		at, err := w.clockIs(ctx)
		if err != nil {
			continue // the database may be away
		}
		jumps = append(jumps, time.Until(at).Round(time.Minute).String())
	}
	var floors int
	err := w.pool.QueryRow(ctx, `select count(*) from oncestream.key_floor`).Scan(&floors)
	if err == nil && floors > 0 {
		err = fmt.Errorf("keys of %d partitions were purged, and all are younger than the run", floors)
	}
	return fmt.Sprintf("off by %v", jumps), len(jumps) > 1 && jumps[0] != jumps[1], err
}

// clockIs is the time of the database.
func (w *world) clockIs(ctx context.Context) (at time.Time, err error) {
	err = w.pool.QueryRow(ctx, `select clock_timestamp()`).Scan(&at)
	return at, err
}
