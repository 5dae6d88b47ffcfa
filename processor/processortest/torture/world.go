package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/processor/processortest/check"
	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
	"github.com/oncestream/oncestream/schema/tables"
	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// world is all that a run runs on.
type world struct {
	Options
	kafka    *kafka
	postgres *embedded.Server
	old      []*embedded.Server // that were failed over from
	front    *pgproxy.Proxy     // follows a failover
	pool     *pgxpool.Pool      // by way of the front, for those who watch
	workers  []*worker
	producer *producer

	mu      sync.Mutex
	history check.History   // its faults and samples, until all is collected
	read    map[int32]int64 // up to where the history has the log
	// changes is held by a fault that takes records out of the log, so that each
	// finds the log as it is.
	changes sync.Mutex
	logs    map[int32]int // which of its logs a partition has
	topics  [][16]byte    // the identities that the topic has had
	clocks  string        // a folder that the database's account reads, for its clock
}

// openWorld starts everything but the producer. What has started is closed where
// the rest fails.
func openWorld(ctx context.Context, o Options) (*world, error) {
	w := &world{Options: o, read: map[int32]int64{}, logs: map[int32]int{}}
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) open(ctx context.Context) (err error) {
	w.Say("starting PostgreSQL, %s and %d workers", w.Broker, w.Workers)
	if err := w.startPostgres(ctx); err != nil {
		return err
	}
	if err := w.createTables(ctx); err != nil {
		return err
	}
	if w.kafka, err = startKafka(ctx, w.Options); err != nil {
		return err
	}
	if err := w.createTopic(ctx, w.Partitions); err != nil {
		return err
	}
	for n := range w.Workers {
		worker, err := newWorker(n+1, w.Options, w.kafka, w.postgres.URL(""))
		if err != nil {
			return err
		}
		w.workers = append(w.workers, worker)
		if err := worker.start(); err != nil {
			return err
		}
	}
	w.producer = newProducer(w.kafka, w.Options)
	return w.producer.open()
}

// startPostgres starts the database, with what the faults of the run need of it.
func (w *world) startPostgres(ctx context.Context) (err error) {
	o := embedded.Options{Archive: true}
	faults, _ := w.chosen()
	for _, f := range faults {
		switch f.Name {
		case "disk-full", "wal-full":
			o.Room = diskRoom
			o.Settings = map[string]string{"max_wal_size": "256MB"} // a disk in memory
		case "clock-jump":
			if w.clocks, err = os.MkdirTemp("", "oncestream-clock-"); err != nil {
				return err
			}
			if err := errors.Join(os.Chmod(w.clocks, 0o755), w.setClock("+0")); err != nil { //nolint:gosec // another account reads it
				return err
			}
			o.Environment = clockEnvironment(w.clockFile())
		}
	}
	w.postgres, err = embedded.Start(ctx, o)
	return err
}

// createTopic creates the topic, and notes its identity.
func (w *world) createTopic(ctx context.Context, partitions int) error {
	if err := w.kafka.createTopic(ctx, partitions); err != nil {
		return err
	}
	return w.until(ctx, patience, "the topic to be there", func(ctx context.Context) (bool, error) {
		is, err := w.kafka.details(ctx)
		if err != nil || len(is.Partitions) != partitions {
			return false, nil //nolint:nilerr // it is asked again
		}
		w.topics = append(w.topics, is.ID)
		return true, nil
	})
}

// newLog notes that a partition has another log from an offset on.
func (w *world) newLog(p int32, from int64) {
	w.logs[p]++
	w.read[p] = from
}

func (w *world) createTables(ctx context.Context) (err error) {
	if w.front, err = pgproxy.Listen(w.postgres.URL("")); err != nil {
		return err
	}
	url := w.front.URL()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	if _, err := tables.Migrate(ctx, cfg, "oncestream"); err != nil {
		return err
	}
	if w.pool, err = pgxpool.New(ctx, url); err != nil {
		return err
	}
	if _, err = w.pool.Exec(ctx, workloadTables); err == nil && w.Tables != "" {
		_, err = w.pool.Exec(ctx, w.Tables)
	}
	return err
}

// close ends everything. It may be called on what has opened in part.
func (w *world) close() error {
	var errs []error
	for _, worker := range w.workers {
		errs = append(errs, worker.close())
	}
	if w.producer != nil {
		w.producer.close()
	}
	if w.pool != nil {
		w.pool.Close()
	}
	if w.front != nil {
		errs = append(errs, w.front.Close())
	}
	if w.kafka != nil {
		errs = append(errs, w.kafka.close())
	}
	for _, server := range append(w.old, w.postgres) {
		if server != nil {
			errs = append(errs, server.Close())
		}
	}
	if w.clocks != "" {
		errs = append(errs, os.RemoveAll(w.clocks))
	}
	return errors.Join(errs...)
}

// heal makes good what a fault that was cut short may have left.
func (w *world) heal(ctx context.Context) error {
	if err := w.untilUp(ctx); err != nil {
		return err
	}
	for _, worker := range w.workers {
		worker.strike(nil)
		worker.proxy.SetLink(nothing)
		worker.proxy.Up()
		if err := w.reachKafka(worker); err != nil {
			return err
		}
		if p := worker.running(false); p != nil {
			if err := p.Resume(); err != nil {
				return err
			}
		}
		if err := worker.start(); err != nil {
			return err
		}
	}
	return nil
}

// untilUp waits until the database answers, for a while.
func (w *world) untilUp(ctx context.Context) error {
	return w.until(ctx, time.Minute, "the database to answer", func(ctx context.Context) (bool, error) {
		return w.pool.Ping(ctx) == nil, nil
	})
}

// until asks again and again, for so long.
func (w *world) until(ctx context.Context, limit time.Duration, what string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		done, err := ask(ctx)
		if done || err != nil {
			return err
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("torture: waited %v for %s: %w", limit, what, ctx.Err())
		}
	}
}

// pause waits, unless ctx ends.
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

// handled is how many offsets have been passed.
func (w *world) handled(ctx context.Context) (n int64, err error) {
	err = w.pool.QueryRow(ctx, `select coalesce(sum(next_offset - first_offset), 0)::bigint from oncestream.consumer_offset`).Scan(&n)
	return n, err
}

// lag is how many offsets are left.
func (w *world) lag(ctx context.Context) (lag int64, err error) {
	ends, err := w.kafka.ends(ctx)
	if err != nil {
		return 0, err
	}
	next := map[int32]int64{}
	rows, err := w.pool.Query(ctx, `select partition, next_offset from oncestream.consumer_offset`)
	if err != nil {
		return 0, err
	}
	var p int32
	var offset int64
	if _, err := pgx.ForEachRow(rows, []any{&p, &offset}, func() error { next[p] = offset; return nil }); err != nil {
		return 0, err
	}
	for p, end := range ends {
		lag += max(0, end-next[p])
	}
	return lag, nil
}
