package processor

import (
	"testing"
	"time"

	"github.com/oncestream/oncestream/offsets"
)

// Proves that a claim waits for a transaction as long as its own timeouts may take,
// and no longer; and not for an hour where the database's clock has gone back by one
// while it ran, since then those timeouts are an hour late. (The torture has seen
// partitions stand still so, with the clock of PostgreSQL set.)
func TestOverdue(t *testing.T) {
	p := Postgres{TransactionTimeout: 30 * time.Second, IdleTimeout: 10 * time.Second, LockTimeout: 2 * time.Second}
	for _, c := range []struct {
		state string
		since time.Duration
		want  bool
	}{
		{"active", 32 * time.Second, false},
		{"active", 33 * time.Second, true},
		{"idle in transaction", 12 * time.Second, false},
		{"idle in transaction", 13 * time.Second, true},
		{"idle in transaction (aborted)", 13 * time.Second, true},
		{"active", -time.Second, false}, // it began after the question was asked
		{"active", -time.Hour, true},
		{"idle in transaction", -time.Hour, true},
	} {
		if got := p.overdue(offsets.Holder{State: c.state, Since: c.since}); got != c.want {
			t.Errorf("%s for %v: overdue %t, want %t", c.state, c.since, got, c.want)
		}
	}
}
