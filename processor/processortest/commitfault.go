package processortest

import (
	"context"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// CommitFault is what befalls one COMMIT on its way to PostgreSQL or back.
type CommitFault string

// The faults of a COMMIT. What the client learns is the same in all of them: an
// error that tells nothing.
const (
	// NoFault lets the COMMIT and its answer pass.
	NoFault CommitFault = ""
	// CutBefore breaks the connection before the message leaves: the server
	// rolls back.
	CutBefore CommitFault = "cut before"
	// CutInside breaks the connection in the middle of the message: the server
	// rolls back.
	CutInside CommitFault = "cut inside"
	// CutAfter breaks the connection when the server has answered, before the
	// client sees it: the transaction is committed.
	CutAfter CommitFault = "cut after"
	// HoldAnswer delays the answer, usually beyond the client's patience: the
	// transaction is committed.
	HoldAnswer CommitFault = "hold answer"
)

// CommitFaults strikes chosen COMMITs on real connections to PostgreSQL. Its
// methods may be called from several goroutines.
type CommitFaults struct {
	choose func(n int) CommitFault
	hold   time.Duration

	mu      sync.Mutex
	commits int
	struck  map[CommitFault]int
}

// NewCommitFaults returns faults that choose decides on: it is called at each
// COMMIT with its number, counted from 1 over all connections. The answers that
// HoldAnswer delays are held for hold.
func NewCommitFaults(hold time.Duration, choose func(n int) CommitFault) *CommitFaults {
	return &CommitFaults{choose: choose, hold: hold, struck: map[CommitFault]int{}}
}

// AtCommit returns faults that strike the n-th COMMIT, counted from 1, and no
// other.
func AtCommit(n int, fault CommitFault, hold time.Duration) *CommitFaults {
	return NewCommitFaults(hold, func(i int) CommitFault {
		if i == n {
			return fault
		}
		return NoFault
	})
}

// Install makes every connection that config opens subject to the faults.
func (f *CommitFaults) Install(config *pgconn.Config) {
	inner := config.AfterNetConnect
	config.AfterNetConnect = func(ctx context.Context, config *pgconn.Config, conn net.Conn) (net.Conn, error) {
		if inner != nil {
			var err error
			if conn, err = inner(ctx, config, conn); err != nil {
				return nil, err
			}
		}
		return newFaultyConn(conn, f), nil
	}
}

// Commits returns how many COMMITs have passed or been struck.
func (f *CommitFaults) Commits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.commits
}

// Struck returns how often each fault has struck. A test asks for it at its
// end: one in which no fault struck proves nothing.
func (f *CommitFaults) Struck() map[CommitFault]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.struck)
}

// next counts a COMMIT and returns what befalls it.
func (f *CommitFaults) next() CommitFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commits++
	fault := f.choose(f.commits)
	if fault != NoFault {
		f.struck[fault]++
	}
	return fault
}
