package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/offsets"
)

// engine is one run of a Processor: the workers of the partitions that are
// assigned right now, and what they share.
type engine struct {
	// ctx is the run's: it ends when the run is asked to stop, and carries the
	// values of the caller's context.
	ctx      context.Context
	cfg      Config
	decoder  decoder
	source   *groupSource
	identity offsets.Identity
	transactor

	mu      sync.Mutex
	workers map[int32]*worker
	known   map[int32]bool // partitions of which the ledger has a position
	halts   map[int32]standstill

	// suspicion wakes guardTopic.
	suspicion chan struct{}
}

// assigned starts a worker for each partition.
func (e *engine) assigned(partitions []int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range partitions {
		e.workers[p] = e.newWorker(p)
	}
}

// released stops the workers of the partitions, waits for their transactions
// in flight within the budget, and lets go. A transaction that does not end in
// time is aborted, so that the next owner's claim need not wait for it.
func (e *engine) released(partitions []int32) {
	leaving := e.take(partitions)
	for _, w := range leaving {
		w.stop()
	}
	e.drain(leaving)
	var claims []offsets.Claim
	for _, w := range leaving {
		if w.held {
			claims = append(claims, w.claim)
		}
		call2(e.cfg.Hooks.Released, e.cfg.Kafka.Topic, w.claim)
	}
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), e.cfg.Postgres.LockTimeout)
	defer cancel()
	if err := e.ledger.Release(ctx, e.pool, claims); err != nil {
		e.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "the release could not be noted in the ledger", slog.Any("reason", err))
	}
}

// take removes the workers of the partitions from those that are served.
func (e *engine) take(partitions []int32) []*worker {
	e.mu.Lock()
	defer e.mu.Unlock()
	var taken []*worker
	for _, p := range partitions {
		if w := e.workers[p]; w != nil {
			taken = append(taken, w)
			delete(e.workers, p)
			delete(e.halts, p)
		}
	}
	return taken
}

func (e *engine) drain(leaving []*worker) {
	timer := time.NewTimer(e.cfg.DrainTimeout)
	defer timer.Stop()
	for _, w := range leaving {
		select {
		case <-w.done:
		case <-timer.C:
			e.cfg.Logger.LogAttrs(e.ctx, slog.LevelWarn, "the drain took longer than its budget; letting go of transactions in flight",
				slog.Duration("budget", e.cfg.DrainTimeout))
			for _, w := range leaving {
				w.abort()
			}
			timer.Reset(forever)
		}
		<-w.done
		w.abort() // nothing runs any more: this frees the context
	}
}

// worker returns the worker of a partition, nil where it is not assigned.
func (e *engine) worker(partition int32) *worker {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.workers[partition]
}

// all returns the partitions that are assigned.
func (e *engine) all() []int32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	var partitions []int32
	for p := range e.workers {
		partitions = append(partitions, p)
	}
	slices.Sort(partitions)
	return partitions
}

// queued returns how many bytes all queues hold.
func (e *engine) queued() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	total := 0
	for _, w := range e.workers {
		total += w.queue.size()
	}
	return total
}

// claim takes the worker's partition, however long that takes: nothing is
// fetched before, and Kafka's own offset is never a substitute. It ends with
// the intake, with a halt if the stored position is of another topic, or with
// an *otherTopicError if the session is.
func (e *engine) claim(intake context.Context, w *worker) (offsets.Claim, error) {
	var claim offsets.Claim
	err := e.persist(intake, w.log, "claim", w.partition, func(ctx context.Context) error {
		start, err := e.beginning(ctx, w.partition)
		if err != nil {
			return err
		}
		claims, refusals, err := e.ledger.Claim(ctx, e.pool, e.cfg.Owner, e.identity, []offsets.Assigned{{Partition: w.partition, Start: start}})
		switch {
		case err != nil:
			return err
		case len(refusals) > 0:
			return e.refuse(ctx, refusals[0])
		case len(claims) == 0:
			return fmt.Errorf("processor: claim %s/%d: the ledger has neither granted nor refused it", e.cfg.Kafka.Topic, w.partition)
		}
		claim = claims[0]
		e.mu.Lock()
		e.known[w.partition] = true
		e.mu.Unlock()
		return nil
	})
	return claim, err
}

// recall learns which record keys are blocked by parked dead letters.
func (e *engine) recall(intake context.Context, w *worker) (*history, error) {
	h := &history{rate: rate{limit: e.policy.MaxDeadLetterRate, window: int64(e.policy.DeadLetterWindow)}, parked: map[string]bool{}}
	if e.policy.OnError != Park {
		return h, nil
	}
	err := e.persist(intake, w.log, "recall", w.partition, func(ctx context.Context) error {
		keys, err := e.ledger.Blocked(ctx, e.pool, w.partition, nil)
		for _, k := range keys {
			h.parked[string(k)] = true
		}
		return err
	})
	return h, err
}

// beginning is where a partition starts that the ledger does not know: one that
// has appeared after the group's first start is read from its beginning.
func (e *engine) beginning(ctx context.Context, partition int32) (int64, error) {
	e.mu.Lock()
	known := e.known[partition]
	e.mu.Unlock()
	if known {
		return 0, nil // not looked at
	}
	// The partition is new, or the database has gone back: perhaps to a moment
	// before the handler.
	if err := e.ledger.Register(ctx, e.pool); err != nil {
		return 0, err
	}
	start, err := e.source.logStart(ctx, partition)
	if err == nil {
		e.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "the ledger does not know the partition: it is read from its beginning",
			slog.String("topic", e.cfg.Kafka.Topic), slog.Int("partition", int(partition)), slog.Int64("offset", start))
	}
	return start, err
}

// forget drops what is known of the ledger's position, because the database has
// gone back: it may have lost the position with the rest.
func (e *engine) forget(partition int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, partition)
}

// reclaim is Ledger.Reclaim on a fresh connection, as often as it takes.
func (e *engine) reclaim(ctx context.Context, c offsets.Claim, log *slog.Logger) (offsets.Claim, error) {
	next := c
	err := e.persist(ctx, log, "reclaim", c.Partition, func(ctx context.Context) (err error) {
		next, err = e.ledger.Reclaim(ctx, e.pool, c)
		return err
	})
	return next, err
}

// persist tries an operation on the ledger until it succeeds, is superseded or
// halts, or ctx ends.
func (e *engine) persist(ctx context.Context, log *slog.Logger, what string, partition int32, operation func(context.Context) error) error {
	pause := e.cfg.Retry.newBackOff()
	for {
		attempt, cancel := context.WithTimeout(ctx, e.cfg.Postgres.TransactionTimeout)
		err := operation(attempt)
		cancel()
		var halt *haltError
		if err == nil || errors.As(err, &halt) || errors.As(err, new(*otherTopicError)) || ctx.Err() != nil {
			return err
		}
		if classify(err) == superseded {
			return err
		}
		if server, ok := errors.AsType[*pgconn.PgError](err); ok && server.Code == lockNotAvailable {
			e.lookAtHolder(ctx, log, partition)
		}
		if err := e.pause(ctx, log, what, err, pause.NextBackOff()); err != nil {
			return err
		}
	}
}

const lockNotAvailable = "55P03"

// lookAtHolder says who holds the row that a claim waits for, and ends that
// backend as a last resort: when its transaction has outlasted the timeouts
// with which every session of ours begins.
func (e *engine) lookAtHolder(ctx context.Context, log *slog.Logger, partition int32) {
	h, found, err := e.ledger.Holder(ctx, e.pool, partition)
	if err != nil || !found {
		return
	}
	log.LogAttrs(ctx, slog.LevelWarn, "the claim waits for another transaction", slog.Int("pid", int(h.PID)),
		slog.String("application", h.Application), slog.String("state", h.State), slog.Duration("since", h.Since))
	if !e.cfg.Postgres.overdue(h) {
		return
	}
	if ended, err := e.ledger.Terminate(ctx, e.pool, h); err == nil && ended {
		log.LogAttrs(ctx, slog.LevelWarn, "ended the backend that held the partition beyond every timeout", slog.Int("pid", int(h.PID)))
	}
}

// overdue reports whether a transaction has outlasted the timeouts of our sessions.
// One that seems to begin in the future has seen the database's clock go back: the
// timeouts that it was given then do not end it before that time comes again, and
// nor would its age.
func (p Postgres) overdue(h offsets.Holder) bool {
	limit := p.TransactionTimeout + p.LockTimeout
	if h.State == "idle in transaction" || h.State == "idle in transaction (aborted)" {
		limit = p.IdleTimeout + p.LockTimeout
	}
	return h.Since > limit || h.Since < -limit
}

// pause waits before another attempt, and says why.
func (e *engine) pause(ctx context.Context, log *slog.Logger, what string, err error, d time.Duration) error {
	err = elsewhere(e.pool, err)
	log.LogAttrs(ctx, slog.LevelWarn, "will try again", slog.String("what", what), slog.Duration("pause", d), slog.Any("reason", err))
	if e.cfg.Hooks.Retrying != nil {
		e.cfg.Hooks.Retrying(what, err, d)
	}
	return sleep(ctx, d)
}
