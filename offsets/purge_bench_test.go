package offsets_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// BenchmarkPurgeBesideIntake is one big purge beside a steady intake: 5,000,000
// expired keys and 2,000 records a second (case D11). It reports the 99th
// percentile of the apply transaction before and while the purge runs, and how
// many keys go in a second. Run it with -benchtime 1x.
func BenchmarkPurgeBesideIntake(b *testing.B) {
	const expired = 5_000_000
	for b.Loop() {
		db := tablestest.New(b)
		l := newLedger(b, db)
		oldKeys(db, "shop", 1, 0, expired, "31 days")
		db.Exec("vacuum analyze processed_message")
		db.Exec("checkpoint")
		in := newSteady(b, db, l)
		before, cancel := context.WithTimeout(b.Context(), 30*time.Second)
		alone := in.run(before)
		cancel()

		during, stop := context.WithCancel(b.Context())
		began, keys := time.Now(), int64(0)
		var err error
		go func() {
			defer stop()
			keys, err = gently(b.Context(), l, db)
		}()
		beside := in.run(during)
		if err != nil || keys != expired {
			b.Fatalf("%d keys were purged: %v", keys, err)
		}
		b.ReportMetric(float64(percentile(alone, 50).Microseconds())/1000, "ms-p50-before")
		b.ReportMetric(float64(percentile(beside, 50).Microseconds())/1000, "ms-p50-during")
		b.ReportMetric(float64(percentile(alone, 99).Microseconds())/1000, "ms-p99-before")
		b.ReportMetric(float64(percentile(beside, 99).Microseconds())/1000, "ms-p99-during")
		b.ReportMetric(float64(keys)/time.Since(began).Seconds(), "keys/s")
		b.ReportMetric(float64(len(beside)), "batches-during")
	}
}

// gently purges as the processor does: it rests as long as it works.
func gently(ctx context.Context, l *offsets.Ledger, db *tablestest.DB) (keys int64, err error) {
	for passed := int64(0); ; {
		began := time.Now()
		purged, err := l.Purge(ctx, db.Pool, offsets.Purge{Retain: 30 * day})
		if err != nil {
			return keys, err
		}
		keys, passed = keys+purged.Keys, passed+purged.Blocks
		if passed >= purged.Table {
			return keys, nil
		}
		<-time.After(time.Since(began))
	}
}

// steady is an intake of 2,000 records a second, in batches of 100.
type steady struct {
	b     *testing.B
	db    *tablestest.DB
	l     *offsets.Ledger
	claim offsets.Claim
	batch *benchEntries
}

func newSteady(b *testing.B, db *tablestest.DB, l *offsets.Ledger) *steady {
	claims, _, err := l.Claim(b.Context(), db.Pool, "bench", offsets.Identity{}, []offsets.Assigned{{Partition: 0}})
	if err != nil {
		b.Fatal(err)
	}
	return &steady{b: b, db: db, l: l, claim: claims[0], batch: newBenchBatch(100, 0)}
}

// run works until ctx ends and returns how long each transaction took.
func (s *steady) run(ctx context.Context) []time.Duration {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var took []time.Duration
	for ctx.Err() == nil {
		s.batch.next()
		began := time.Now()
		err := offsets.ErrKeyVanished
		for errors.Is(err, offsets.ErrKeyVanished) {
			err = pgx.BeginFunc(context.WithoutCancel(ctx), s.db.Pool, func(tx pgx.Tx) (err error) {
				to := offsets.Position{Next: s.claim.Next + int64(len(s.batch.entries)), Records: int64(len(s.batch.entries))}
				s.claim, _, err = s.l.AdvanceAndAdmit(context.WithoutCancel(ctx), tx, s.claim, to, s.batch.entries)
				return err
			})
		}
		if err != nil {
			s.b.Fatal(err)
		}
		took = append(took, time.Since(began))
		<-ticker.C
	}
	return took
}

func percentile(took []time.Duration, p int) time.Duration {
	slices.Sort(took)
	return took[len(took)*p/100]
}
