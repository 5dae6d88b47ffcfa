package processortest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/processor"
)

// strike has a process run until the fault has struck it, or there is nothing
// left to do.
func (s *simulation[T]) strike(fault SimulatedFault) error {
	at := 1 + s.random.IntN(3) // transactions
	if fault == SimulateCrash {
		at = 1 + s.random.IntN(12) // steps
	}
	s.struck = append(s.struck, fmt.Sprintf("%s at %d", fault, at))
	switch fault {
	case SimulateCrash:
		return s.crash(at)
	case SimulateLostCommit:
		kinds := []CommitFault{CutBefore, CutInside, CutAfter}
		return s.loseCommit(at, kinds[s.random.IntN(len(kinds))])
	case SimulateLeave:
		return s.leave(at)
	case SimulateRival:
		return s.rival(at)
	case SimulateRewind:
		return s.rewind()
	}
	return fmt.Errorf("no fault %q", fault)
}

// crash cuts every connection to the database at a step of a transaction and
// lets none be made again: to the database, the process is gone.
func (s *simulation[T]) crash(at int) error {
	cfg := s.config()
	var line lifeline
	cfg.Postgres.Configure = line.install
	var steps atomic.Int64
	dead, die := context.WithCancel(s.tb.Context())
	defer die()
	cfg.Hooks.Step = func(processor.Step, processor.BatchInfo) {
		if steps.Add(1) == int64(at) {
			line.cut()
			die()
		}
	}
	if err := s.run(dead, cfg); dead.Err() == nil {
		return err
	}
	return nil // whatever a dead process has said
}

// loseCommit has one COMMIT go without an answer; the process goes on to the end.
func (s *simulation[T]) loseCommit(at int, kind CommitFault) error {
	cfg := s.config()
	faults := AtCommit(at, kind, 0)
	cfg.Postgres.Configure = func(c *pgxpool.Config) error {
		faults.Install(&c.ConnConfig.Config)
		return nil
	}
	return s.run(s.tb.Context(), cfg)
}

// leave stops after some transactions.
func (s *simulation[T]) leave(at int) error {
	ctx, stop := context.WithCancel(s.tb.Context())
	defer stop()
	return s.run(ctx, s.until(s.config(), at, stop))
}

// rival has two members at once, of which the first leaves after some
// transactions.
func (s *simulation[T]) rival(at int) error {
	ctx, stop := context.WithCancel(s.tb.Context())
	defer stop()
	var both sync.WaitGroup
	var first, second error
	both.Go(func() { first = s.run(ctx, s.until(s.config(), at, stop)) })
	both.Go(func() { second = s.run(s.tb.Context(), s.config()) })
	both.Wait()
	return errors.Join(first, second)
}

// until calls do after so many transactions.
func (s *simulation[T]) until(cfg processor.Config, transactions int, do func()) processor.Config {
	var n atomic.Int64
	cfg.Hooks.Committed = func(processor.BatchInfo) {
		if n.Add(1) == int64(transactions) {
			do()
		}
	}
	return cfg
}

// run runs a process until everything is handled or ctx ends.
func (s *simulation[T]) run(ctx context.Context, cfg processor.Config) error {
	p, err := processor.New(cfg, s.pipeline(s.db))
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, simulatedPatience)
	defer cancel()
	err = p.RunToEnd(limited)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// lifeline holds the connections of a process.
type lifeline struct {
	mu    sync.Mutex
	conns []net.Conn
	dead  bool
}

var errDead = errors.New("processortest: the process is dead")

func (l *lifeline) install(c *pgxpool.Config) error {
	c.ConnConfig.ConnectTimeout = time.Second
	c.ConnConfig.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.dead {
			return conn, errDead // which closes it
		}
		l.conns = append(l.conns, conn)
		return conn, nil
	}
	return nil
}

func (l *lifeline) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for _, conn := range l.conns {
		_ = conn.Close()
	}
}
