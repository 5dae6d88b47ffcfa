package torture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// The pauses between two faults of a lane.
const (
	leastPause = 200 * time.Millisecond
	mostPause  = 3 * time.Second
)

// chosen returns the faults to make, and why others are left out.
func (o Options) chosen() (faults []Fault, left map[string]string) {
	left = map[string]string{}
	for _, f := range Faults() {
		switch {
		case len(o.Faults) > 0 && !slices.Contains(o.Faults, f.Name):
			left[f.Name] = "not asked for"
		case o.Broker == brokerFake && f.Real:
			left[f.Name] = "needs a real broker (--broker kafka)"
		case o.Broker != brokerCluster && f.Cluster:
			left[f.Name] = "needs three brokers (--broker kafka3)"
		case o.Broker != brokerFake && f.Fake:
			left[f.Name] = "needs the Kafka in this process (--broker kfake)"
		case f.Why != "":
			left[f.Name] = f.Why
		default:
			if left[f.Name] = f.lack(); left[f.Name] == "" {
				delete(left, f.Name)
				faults = append(faults, f)
			}
		}
	}
	return faults, left
}

// lack is what this machine lacks of what the fault needs.
func (f Fault) lack() string {
	if f.lacks == nil {
		return ""
	}
	return f.lacks()
}

// torment makes faults, in lanes that run side by side, until the time is over.
func (w *world) torment(ctx context.Context, faults []Fault) error {
	limited, cancel := context.WithTimeout(ctx, w.For)
	defer cancel()
	var wait sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, l := range []lane{processes, services} {
		var mine []Fault
		for _, f := range faults {
			if f.lane == l {
				mine = append(mine, f)
			}
		}
		if len(mine) == 0 {
			continue
		}
		wait.Go(func() {
			err := w.run(ctx, limited, mine, newDice(w.Seed, uint64(2+l)))
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// run makes the faults of a lane in an order of the dice: all of them, then all
// of them again. A fault that has begun is ended, also when the time is over.
func (w *world) run(ctx, limited context.Context, faults []Fault, d *dice) error {
	for limited.Err() == nil {
		d.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for _, f := range faults {
			_ = pause(limited, leastPause+time.Duration(d.Int64N(int64(mostPause-leastPause)))) // an end is looked for below
			if limited.Err() != nil {
				break
			}
			if err := w.make(ctx, f, d); err != nil {
				return fmt.Errorf("torture: %s: %w", f.Name, err)
			}
		}
	}
	return nil
}

func (w *world) make(ctx context.Context, f Fault, d *dice) error {
	began := time.Now()
	detail, struck, err := f.strike(ctx, w, d)
	if err != nil {
		return err
	}
	w.Say("%-22s %s", f.Name, detail)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history.Faults = append(w.history.Faults, check.Fault{
		Row: f.Row, Kind: f.Name, Detail: detail, At: began, For: time.Since(began), Struck: struck,
	})
	return nil
}
