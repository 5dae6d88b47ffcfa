package torture

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
)

// Faults of the workers' processes. A process that was killed is started again at
// once, or a little later.
func processFaults() []Fault {
	return []Fault{
		{Row: 1, Name: "kill", What: "kill -9 of one worker", strike: killOne},
		{Row: 2, Name: "kill-all", What: "kill -9 of all workers at once", strike: killAll},
		{Row: 3, Name: "kill-at", What: "kill -9 at a chosen step of the transaction", strike: killAt},
		{Row: 4, Name: "zombie", What: "a worker stopped for longer than its session, then continued", strike: zombie},
		{Row: 5, Name: "zombie-in-transaction", What: "a worker stopped while it holds a partition's row, then continued", strike: zombieInTransaction},
		{Row: 6, Name: "terminate", What: "SIGTERM under load", strike: terminate},
		{Row: 33, Name: "retention", What: "unread records removed by retention; the halt resolved by the printed command", strike: retention},
		{Row: 23, Name: "storm", What: "a worker leaves and joins every second", strike: storm},
	}
}

// one picks a worker.
func (w *world) one(d *dice) *worker { return w.workers[d.IntN(len(w.workers))] }

func killOne(ctx context.Context, w *world, d *dice) (string, bool, error) {
	victim := w.one(d)
	hit := victim.kill()
	if err := pause(ctx, time.Duration(d.IntN(1500))*time.Millisecond); err != nil {
		return "", hit, err
	}
	return victim.name, hit, victim.start()
}

func killAll(_ context.Context, w *world, _ *dice) (string, bool, error) {
	hit := 0
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, worker := range w.workers {
		all.Go(func() {
			if worker.kill() {
				mu.Lock()
				defer mu.Unlock()
				hit++
			}
		})
	}
	all.Wait()
	for _, worker := range w.workers {
		if err := worker.start(); err != nil {
			return "", hit > 0, err
		}
	}
	return fmt.Sprintf("%d workers", hit), hit > 0, nil
}

// killSteps are the places within the transaction, as they are seen on the wire.
var killSteps = []struct {
	name string
	is   func(pgproxy.Message) bool
}{
	{"after the advance", func(m pgproxy.Message) bool { return m.Tag == "UPDATE 1" }},
	{"after the keys", func(m pgproxy.Message) bool { return strings.HasPrefix(m.Tag, "INSERT 0 ") }},
	{"before the effects", func(m pgproxy.Message) bool { return m.Kind == 'B' && strings.Contains(m.SQL, "appended") }},
	{"after the effects", func(m pgproxy.Message) bool { return m.Kind == 'B' && strings.Contains(m.SQL, "counter") }},
	{"before COMMIT", pgproxy.Message.Commits},
	{"after COMMIT, before Kafka is told", pgproxy.Message.Committed},
}

func killAt(ctx context.Context, w *world, d *dice) (string, bool, error) {
	victim, step := w.one(d), killSteps[d.IntN(len(killSteps))]
	killed := make(chan struct{})
	victim.strike(once(step.is, pgproxy.Action{Cut: pgproxy.CutBeforeMessage, Do: func() {
		victim.kill()
		close(killed)
	}}))
	hit := await(ctx, killed)
	victim.strike(nil)
	return victim.name + " " + step.name, hit, victim.start()
}

// once is a rule that strikes the first message that matches.
func once(is func(pgproxy.Message) bool, action pgproxy.Action) pgproxy.Rule {
	var first sync.Once
	return func(m pgproxy.Message) (a pgproxy.Action) {
		if is(m) {
			first.Do(func() { a = action })
		}
		return a
	}
}

// patience is how long a fault waits for something to strike.
const patience = 10 * time.Second

// await waits for a fault to strike.
func await(ctx context.Context, struck <-chan struct{}) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-struck:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// asleep is longer than a session of the group.
const asleep = 8 * time.Second

func zombie(ctx context.Context, w *world, d *dice) (string, bool, error) {
	victim := w.one(d)
	p := victim.running(false)
	if p == nil {
		return victim.name + " was not there", false, nil
	}
	if err := p.Pause(); err != nil {
		return "", false, err
	}
	err := pause(ctx, asleep)
	if resumeErr := p.Resume(); err == nil {
		err = resumeErr
	}
	return fmt.Sprintf("%s for %v", victim.name, asleep), true, err
}

// zombieInTransaction stops a worker between the advance and its effects, where
// its transaction holds the row that its successor needs.
func zombieInTransaction(ctx context.Context, w *world, d *dice) (string, bool, error) {
	victim := w.one(d)
	stopped := make(chan struct{})
	victim.strike(once(killSteps[2].is, pgproxy.Action{Do: func() {
		if p := victim.running(false); p != nil && p.Pause() == nil {
			close(stopped)
		}
	}, Hold: asleep}))
	hit := await(ctx, stopped)
	victim.strike(nil)
	var err error
	if hit {
		err = pause(ctx, asleep)
	}
	if p := victim.running(false); p != nil {
		if resumeErr := p.Resume(); err == nil {
			err = resumeErr
		}
	}
	return fmt.Sprintf("%s for %v", victim.name, asleep), hit, err
}

// grace is how long a worker may take to stop when it is asked to.
const grace = 20 * time.Second

func terminate(ctx context.Context, w *world, d *dice) (string, bool, error) {
	victim := w.one(d)
	hit, err := w.stop(ctx, victim)
	if err != nil {
		return "", hit, err
	}
	return victim.name, hit, victim.start()
}

// stop asks a worker to stop, and checks that it does in time and without fault.
func (w *world) stop(ctx context.Context, victim *worker) (bool, error) {
	p := victim.running(true)
	if p == nil {
		return false, nil
	}
	if err := p.Terminate(); err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	code, err := p.Wait(limited)
	if err != nil && ctx.Err() == nil {
		return true, fmt.Errorf("%s has not ended %v after SIGTERM:\n%s", victim.name, grace, victim.dump(ctx, p))
	}
	if err == nil && code != 0 && code != -1 { // -1: killed by another fault meanwhile
		err = fmt.Errorf("%s ended with exit code %d after SIGTERM", victim.name, code)
	}
	return true, err
}

// storm has a worker leave and join again and again.
func storm(ctx context.Context, w *world, d *dice) (string, bool, error) {
	victim, rounds := w.one(d), 4
	for range rounds {
		if _, err := w.stop(ctx, victim); err != nil {
			return "", false, err
		}
		if err := victim.start(); err != nil {
			return "", false, err
		}
		if err := pause(ctx, time.Second); err != nil {
			return "", true, err
		}
	}
	return fmt.Sprintf("%s %d times", victim.name, rounds), true, nil
}
