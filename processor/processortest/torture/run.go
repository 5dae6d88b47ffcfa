package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// HistoryFile is the name of the history in a run's folder.
const HistoryFile = "history.jsonl"

// Run makes a run and judges it. An error says that the run could not be made, or
// that a program did not do what the schedule needs; what the run has shown of the
// invariants is in the result.
func Run(ctx context.Context, o Options) (Result, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Result{}, err
	}
	if err := os.MkdirAll(o.Folder, 0o755); err != nil {
		return Result{}, fmt.Errorf("torture: %w", err)
	}
	faults, left := o.chosen()
	if len(faults) == 0 {
		return Result{}, errors.New("torture: none of the faults can be made here")
	}
	w, err := openWorld(ctx, o)
	if err != nil {
		return Result{}, err
	}
	err = w.play(ctx, faults)
	result := Result{Options: o, History: &w.history, NotRun: left}
	if err = errors.Join(err, w.close()); err != nil {
		return result, err
	}
	result.Verdicts = check.Judge(&w.history)
	return result, errors.Join(keep(filepath.Join(o.Folder, HistoryFile), w.history.Write), keep(filepath.Join(o.Folder, ReportFile), result.WriteReport))
}

// play goes through the phases.
func (w *world) play(ctx context.Context, faults []Fault) error {
	w.history.Run = check.Run{Seed: w.Seed, Options: w.String(), Began: time.Now(), Limit: w.Limit}
	if err := w.storm(ctx, faults); err != nil {
		return err
	}
	w.Say("healed: waiting for what is left")
	if err := w.heal(ctx); err != nil {
		return err
	}
	w.history.Run.Healed = time.Now()
	err := w.until(ctx, w.Limit, "everything to be handled", func(ctx context.Context) (bool, error) {
		if err := w.resolve(ctx); err != nil {
			return false, err
		}
		lag, err := w.lag(ctx)
		return lag == 0 && err == nil, nil
	})
	if err == nil {
		w.history.Run.Drained = time.Now()
	} else if ctx.Err() != nil {
		return err
	}
	w.Say("reading what the run has left")
	for _, worker := range w.workers {
		if _, err := w.stop(ctx, worker); err != nil {
			return fmt.Errorf("torture: %w", err)
		}
		worker.watch.Wait()
	}
	return w.collect(ctx)
}

// storm has the producer send and the reader look while the faults strike.
func (w *world) storm(ctx context.Context, faults []Fault) error {
	if err := w.until(ctx, time.Minute, "the workers to begin", func(ctx context.Context) (bool, error) {
		var n int
		err := w.pool.QueryRow(ctx, `select count(*) from oncestream.consumer_offset where owner is not null`).Scan(&n)
		return n == w.Partitions, err
	}); err != nil {
		return err
	}
	w.Say("faults for %v, seed %d", w.For, w.Seed)
	during, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	var produced error
	beside.Go(func() { produced = w.producer.run(during) })
	beside.Go(func() { w.watch(during) })
	err := w.torment(ctx, faults)
	stop()
	beside.Wait()
	return errors.Join(err, produced)
}

// keep writes a file.
func keep(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	return errors.Join(write(file), file.Close())
}
