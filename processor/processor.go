package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables"
)

// Errors that a caller may branch on.
var (
	// ErrTxOwned is what a user's code gets when it tries to end the batch's
	// transaction.
	ErrTxOwned = errors.New("processor: the transaction belongs to the engine; use Begin for a savepoint")
	// ErrHalted is what RunToEnd returns when the end cannot be reached because
	// a partition is halted.
	ErrHalted = errors.New("a partition is halted")
)

// Processor runs a pipeline. It may be used again after a run has ended, but
// for one run at a time.
type Processor struct {
	cfg     Config
	handler string
	decoder decoder
	running atomic.Pointer[engine] // for Health
}

// New checks the configuration and returns a Processor; it connects to
// nothing. All that is wrong is reported at once.
func New[T any](cfg Config, p Pipeline[T]) (*Processor, error) {
	c, err := cfg.withDefaults()
	if err := errors.Join(err, p.check()); err != nil {
		return nil, err
	}
	fill(&p.Handler, c.Group)
	return &Processor{cfg: c, handler: p.Handler, decoder: typed[T]{p}}, nil
}

// Run reads the topic until ctx ends, then stops gracefully: it finishes or
// rolls back the transactions in flight within DrainTimeout, tells Kafka the
// offsets, leaves the group, and returns nil. A failure that may pass (a
// database or a broker that is down) does not end a run that has begun.
func (p *Processor) Run(ctx context.Context) error { return unlessStopped(ctx, p.run(ctx, false)) }

// RunToEnd is Run that also ends when every partition of the topic has reached,
// in the ledger, the end that it had at the start, no matter which member of
// the group has brought it there. It answers ErrHalted when what is left lies
// in halted partitions.
func (p *Processor) RunToEnd(ctx context.Context) error { return unlessStopped(ctx, p.run(ctx, true)) }

// unlessStopped drops an error that only says that the run was asked to stop,
// wherever in its start it was.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return nil
	}
	return err
}

func (p *Processor) run(ctx context.Context, toEnd bool) error {
	pool, ledger, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	topic, err := p.begin(ctx, pool, ledger)
	if err != nil {
		return err
	}
	var other *otherTopicError
	for err = p.session(ctx, pool, ledger, topic, toEnd); errors.As(err, &other); err = p.session(ctx, pool, ledger, topic, toEnd) {
		p.cfg.Logger.LogAttrs(ctx, slog.LevelError, "another topic has come under the name; beginning anew with what is there now",
			slog.String("topic", topic.Name), slog.Any("reason", other))
		if topic, err = p.beginAgain(ctx, pool, ledger); err != nil {
			return err
		}
	}
	return err
}

// session is the part of a run that is of one topic; see source_identity.go.
func (p *Processor) session(ctx context.Context, pool *pgxpool.Pool, ledger *offsets.Ledger, topic Topic, toEnd bool) error {
	g, ctx := errgroup.WithContext(ctx)
	intake, stop := context.WithCancel(ctx)
	defer stop()
	e, err := p.newEngine(intake, pool, ledger, topic)
	if err != nil {
		return err
	}
	p.running.Store(e)
	defer p.running.Store(nil)
	g.Go(func() error {
		defer e.source.close()
		return e.source.run(intake)
	})
	g.Go(func() error { return e.guardTopic(intake) })
	g.Go(func() error {
		e.follow(intake)
		return nil
	})
	g.Go(func() error {
		e.purgeKeys(intake)
		return nil
	})
	g.Go(func() error {
		e.watchClaims(intake)
		return nil
	})
	if toEnd {
		g.Go(func() error {
			defer stop()
			return e.awaitEnd(intake, topic)
		})
	}
	return g.Wait()
}

// beginAgain is begin in a run that has begun, which no failure ends.
func (p *Processor) beginAgain(ctx context.Context, pool *pgxpool.Pool, ledger *offsets.Ledger) (Topic, error) {
	pause := p.cfg.Retry.newBackOff()
	for {
		topic, err := p.begin(ctx, pool, ledger)
		if err == nil || ctx.Err() != nil {
			return topic, err
		}
		d := pause.NextBackOff()
		p.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "the topic cannot be looked at; will try again", slog.Duration("pause", d), slog.Any("reason", err))
		if err := sleep(ctx, d); err != nil {
			return topic, err
		}
	}
}

// open connects to the database, checks the ledger's version, and lets the
// sinks look at their targets.
func (p *Processor) open(ctx context.Context) (*pgxpool.Pool, *offsets.Ledger, error) {
	pool, err := openPool(ctx, p.cfg.Group, p.cfg.Postgres)
	if err != nil {
		return nil, nil, err
	}
	ledger := offsets.New(offsets.Options{Schema: p.cfg.Postgres.Schema, Group: p.cfg.Group, Topic: p.cfg.Kafka.Topic, Handler: p.handler})
	err = p.untilReachable(ctx, func(ctx context.Context) error {
		return elsewhere(pool, pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return p.prepare(ctx, c.Conn(), ledger) }))
	})
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return pool, ledger, nil
}

func (p *Processor) prepare(ctx context.Context, conn *pgx.Conn, ledger *offsets.Ledger) error {
	if err := tables.Check(ctx, conn, p.cfg.Postgres.Schema); err != nil {
		return err
	}
	if err := ledger.CheckEnvironment(ctx, conn, p.cfg.Environment); err != nil {
		return err
	}
	if err := ledger.Register(ctx, conn); err != nil {
		return err
	}
	return p.decoder.prepare(ctx, conn)
}

// untilReachable is UntilReachable by the configuration.
func (p *Processor) untilReachable(ctx context.Context, f func(context.Context) error) error {
	return UntilReachable(ctx, p.cfg.Logger, p.cfg.Retry, f)
}

// UntilReachable calls f until the database has answered, for a minute at most:
// it may be starting, or not be there yet. What a database answers about us (a
// wrong password, no such database) is final, and so is every other error of f.
// Whoever asks the database before [New] has to do the same as [Processor.Run],
// or a start beside a restart of the database would fail.
func UntilReachable(ctx context.Context, log *slog.Logger, retry Retry, f func(context.Context) error) error {
	deadline := time.Now().Add(reachTimeout)
	pause := retry.withDefaults().newBackOff()
	for {
		err := f(ctx)
		if err == nil || ctx.Err() != nil || classify(err) != outage || refused(err) || time.Now().After(deadline) {
			return err
		}
		d := pause.NextBackOff()
		log.LogAttrs(ctx, slog.LevelWarn, "the database cannot be reached; will try again", slog.Duration("pause", d), slog.Any("reason", err))
		if err := sleep(ctx, d); err != nil {
			return err
		}
	}
}

// reachTimeout is how long a start waits for the database.
const reachTimeout = time.Minute

// refused reports whether the server has answered that it will not have us:
// class 28 (authorization) and 3D (no such database).
func refused(err error) bool {
	server, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (server.Code[:2] == "28" || server.Code[:2] == "3D")
}

func (p *Processor) newEngine(ctx context.Context, pool *pgxpool.Pool, ledger *offsets.Ledger, topic Topic) (*engine, error) {
	var progress []offsets.Progress
	err := p.untilReachable(ctx, func(ctx context.Context) (err error) {
		progress, err = ledger.Progress(ctx, pool)
		return err
	})
	if err != nil {
		return nil, err
	}
	e := p.assemble(ctx, pool, ledger, topic)
	for _, known := range progress {
		e.known[known.Partition] = true
	}
	return e, openGroup(e)
}

// assemble returns an engine that has no source yet.
func (p *Processor) assemble(ctx context.Context, pool *pgxpool.Pool, ledger *offsets.Ledger, topic Topic) *engine {
	return &engine{
		ctx: ctx, cfg: p.cfg, decoder: p.decoder, identity: topic.identity(),
		workers: map[int32]*worker{}, halts: map[int32]standstill{}, suspicion: make(chan struct{}, 1), known: map[int32]bool{},
		transactor: transactor{
			pool: pool, ledger: ledger, slots: make(chan struct{}, p.cfg.Postgres.Concurrency), policy: p.cfg.Policy, hears: p.decoder.hears(), guardedBy: p.decoder.guardedBy(), log: p.cfg.Logger,
			hooks: p.cfg.Hooks, topic: topic.Name, limit: p.cfg.Postgres.TransactionTimeout,
		},
	}
}

// awaitEnd returns when every partition has reached the end that it had when
// the topic was inspected.
func (e *engine) awaitEnd(ctx context.Context, topic Topic) error {
	for {
		left, err := e.left(ctx, topic)
		if err == nil && len(left) == 0 {
			return nil
		}
		if err == nil && e.onlyHalted(left) {
			h := e.standstills()[0]
			return fmt.Errorf("processor: %s/%d@%d: %w: %w", h.Topic, h.Partition, h.Offset, ErrHalted, h.Err)
		}
		if err := sleep(ctx, endCheck); err != nil {
			return nil //nolint:nilerr // the run was stopped, which is no failure
		}
	}
}

const endCheck = 100 * time.Millisecond

// left returns the partitions that have not reached their end.
func (e *engine) left(ctx context.Context, topic Topic) ([]int32, error) {
	progress, err := e.ledger.Progress(ctx, e.pool)
	if err != nil {
		return nil, err
	}
	next := make(map[int32]int64, len(progress))
	for _, p := range progress {
		next[p.Partition] = p.Next
	}
	var left []int32
	for _, p := range topic.Partitions {
		if next[p.Partition] < e.end(p) {
			left = append(left, p.Partition)
		}
	}
	return left, nil
}

// end is how far a partition can be read.
func (e *engine) end(p PartitionRange) int64 {
	if e.cfg.Kafka.ReadUncommitted {
		return p.End
	}
	return p.Stable
}

// onlyHalted reports whether this process has halted all of the partitions.
func (e *engine) onlyHalted(partitions []int32) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range partitions {
		if _, ok := e.halts[p]; !ok {
			return false
		}
	}
	return true
}
