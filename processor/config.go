package processor

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Config is what a Processor needs besides its pipeline. The zero value of a
// field that is not required means its default.
type Config struct {
	// Group is the consumer group, and the name under which the ledger keeps
	// the position. One group reads one topic. Required.
	Group string
	// Kafka says which topic is read and how.
	Kafka Kafka
	// Postgres says where the effects and the ledger are.
	Postgres Postgres
	// Batch bounds what one transaction holds.
	Batch Batch
	// Retry bounds how a failure that may pass is tried again.
	Retry Retry
	// Policy says what becomes of a message that cannot be handled.
	Policy Policy
	// Keys says how long idempotency keys are kept.
	Keys Keys
	// Environment is what this pipeline runs in, such as "production". The first
	// start that names one gives the ledger this label; one that names another,
	// or none beside a ledger that has one, fails with an
	// [*offsets.OtherEnvironment] before it reads or writes anything.
	// Defaults to none.
	Environment string

	// Owner is how this process calls itself in the ledger and in logs.
	// Defaults to "host/pid".
	Owner string
	// DrainTimeout is how long a revoked partition, or a stop, waits for the
	// transaction in flight before it lets go. Nothing is lost or doubled when
	// it runs out; the work of that batch is done again elsewhere.
	// Defaults to 10 seconds.
	DrainTimeout time.Duration
	// StuckAfter is how long a partition may be claiming, or at one batch while
	// records wait, before [Processor.Health] calls it stuck. Nothing else
	// follows from it. Defaults to 1 minute.
	StuckAfter time.Duration
	// Logger receives one line for each thing a person may want to know.
	// Defaults to slog.Default().
	Logger *slog.Logger
	// Hooks are called at the steps of the protocol. Defaults to none.
	Hooks Hooks
}

// Postgres says where the effects and the ledger are: always one database, as
// one transaction holds both.
type Postgres struct {
	// URL is a connection string, as a URI or as keywords and values
	// (PostgreSQL manual, section 34.1.1). Behind a pooler in transaction mode
	// it needs default_query_exec_mode=cache_describe, unless the pooler keeps
	// prepared statements apart, and the pooler must set
	// idle_in_transaction_session_timeout, statement_timeout and lock_timeout
	// where it connects; a start that finds it otherwise fails. Required.
	URL string
	// Configure, if set, may change the pool's configuration before it is
	// used: a dialer, a tracer, TLS. Session settings that it sets win.
	Configure func(*pgxpool.Config) error
	// Schema is where the ledger's tables live. The tables of the effects are
	// found by the connection's own search_path. Defaults to "oncestream".
	Schema string
	// Concurrency is how many batch transactions may run at once in this
	// process, and with two more the number of its connections.
	// Defaults to 4.
	Concurrency int
	// TransactionTimeout bounds one batch transaction, and as statement_timeout
	// each statement of it. Defaults to 60 seconds.
	TransactionTimeout time.Duration
	// IdleTimeout is the idle_in_transaction_session_timeout of our sessions:
	// after it the server ends the transaction of a process that was stopped
	// in the middle of one, and its partition can be claimed.
	// Defaults to 10 seconds.
	IdleTimeout time.Duration
	// LockTimeout is how long a claim waits for the row of its partition before
	// it looks who holds it and tries again. Defaults to 2 seconds.
	LockTimeout time.Duration
}

// Batch bounds what one transaction holds: whichever bound is met first
// closes a batch.
type Batch struct {
	// MaxRecords is the number of records. Defaults to 5000.
	MaxRecords int
	// MaxBytes is the size of keys and values together. One record larger than
	// it makes a batch of its own. Defaults to 8 MiB.
	MaxBytes int
	// MaxWait is how long the first record of a batch waits for others.
	// Defaults to 10 milliseconds.
	MaxWait time.Duration
}

// Keys says how long idempotency keys are kept. A record that is redelivered is
// passed by its offset, whether its key is there or not; what a key is kept for
// is the producer who sends an event again, and a replay.
type Keys struct {
	// Retain is how long a key is kept at least, by the database's clock. It is
	// purged within another tenth of the time. Keys belong to the handler: where
	// pipelines share one, the shortest time holds for all.
	// Defaults to 0: for ever.
	Retain time.Duration
	// PurgeEvery is how often old keys are looked for.
	// Defaults to 1 minute.
	PurgeEvery time.Duration
}

// Retry bounds how a failure that may pass (a deadlock, a database that
// restarts) is tried again, with jittered exponential backoff. A failure of
// the connection or of the server is tried for ever, since nothing can be
// done better; one of unknown kind halts the partition after Attempts.
type Retry struct {
	// Initial and Max are the first and the longest pause.
	// Default to 50 milliseconds and 5 seconds.
	Initial, Max time.Duration
	// Attempts is how often an error of unknown kind is tried.
	// Defaults to 10.
	Attempts int
}

// withDefaults returns the configuration with its defaults filled in, and all
// that is wrong with it, joined.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	require := func(ok bool, path, rule string, got any) {
		if !ok {
			errs = append(errs, fmt.Errorf("config: %s: %s (got %v)", path, rule, got))
		}
	}
	require(c.Group != "", "group", "the consumer group's name is required", "nothing")
	require(c.Postgres.URL != "", "postgres.url", "a connection string is required", "nothing")
	require(c.Postgres.Concurrency >= 0 && c.Postgres.Concurrency <= math.MaxInt16, "postgres.concurrency", "must lie between 1 and 32767", c.Postgres.Concurrency)
	require(c.Batch.MaxRecords >= 0, "batch.max_records", "must be positive", c.Batch.MaxRecords)
	require(c.Batch.MaxBytes >= 0, "batch.max_bytes", "must be positive", c.Batch.MaxBytes)
	require(c.Retry.Attempts >= 0, "retry.attempts", "must be positive", c.Retry.Attempts)
	for path, d := range map[string]time.Duration{
		"batch.max_wait": c.Batch.MaxWait, "drain_timeout": c.DrainTimeout, "stuck_after": c.StuckAfter, "retry.initial": c.Retry.Initial, "retry.max": c.Retry.Max,
		"keys.retain": c.Keys.Retain, "keys.purge_every": c.Keys.PurgeEvery,
		"postgres.transaction_timeout": c.Postgres.TransactionTimeout, "postgres.idle_timeout": c.Postgres.IdleTimeout, "postgres.lock_timeout": c.Postgres.LockTimeout,
	} {
		require(d >= 0, path, "must not be negative", d)
	}
	c.Policy = c.Policy.withDefaults(require)
	kafka, err := c.Kafka.withDefaults()
	c.Kafka = kafka
	errs = append(errs, err)

	fill(&c.Owner, defaultOwner())
	fill(&c.DrainTimeout, 10*time.Second)
	fill(&c.StuckAfter, time.Minute)
	fill(&c.Postgres.Schema, "oncestream")
	fill(&c.Postgres.Concurrency, 4)
	fill(&c.Postgres.TransactionTimeout, time.Minute)
	fill(&c.Postgres.IdleTimeout, 10*time.Second)
	fill(&c.Postgres.LockTimeout, 2*time.Second)
	fill(&c.Batch.MaxRecords, 5000)
	fill(&c.Batch.MaxBytes, 8<<20)
	fill(&c.Batch.MaxWait, 10*time.Millisecond)
	fill(&c.Keys.PurgeEvery, time.Minute)
	c.Retry = c.Retry.withDefaults()
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, errors.Join(errs...)
}

func (r Retry) withDefaults() Retry {
	fill(&r.Initial, 50*time.Millisecond)
	fill(&r.Max, 5*time.Second)
	fill(&r.Attempts, 10)
	return r
}

// fill sets v to its default where it is zero.
func fill[V comparable](v *V, value V) {
	var zero V
	if *v == zero {
		*v = value
	}
}

func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
