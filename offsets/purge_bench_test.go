package offsets_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// BenchmarkPurgeBesideIntake is one big purge beside a steady intake: 5,000,000
// expired keys and 2,000 records a second (case D11). It reports the 99th
// percentile of the apply transaction without and beside the purge, by turns of
// a few seconds, so that what else the machine does concerns both; and how many
// keys go in a second. Run it with -benchtime 1x.
func BenchmarkPurgeBesideIntake(b *testing.B) {
	const expired = 5_000_000
	for b.Loop() {
		db := tablestest.New(b)
		l := newLedger(b, db)
		oldKeys(db, "shop", 1, 0, expired, "31 days")
		db.Exec("vacuum analyze processed_message")
		db.Exec("checkpoint")
		in := newSteady(b, db, l)
		g := &gentle{l: l, db: db}
		var alone, beside []time.Duration
		for !g.everywhere {
			alone = append(alone, in.run(turn(b, nil))...)
			beside = append(beside, in.run(turn(b, g))...)
		}
		if g.err != nil || g.keys != expired {
			b.Fatalf("%d keys were purged: %v", g.keys, g.err)
		}
		for _, p := range []int{50, 99} {
			b.ReportMetric(percentile(alone, p), fmt.Sprintf("ms-p%d-alone", p))
			b.ReportMetric(percentile(beside, p), fmt.Sprintf("ms-p%d-beside", p))
		}
		b.ReportMetric(float64(g.keys)/g.took.Seconds(), "keys/s")
	}
}

// turn returns a context that ends after a few seconds, when the purge, if there
// is one, has stopped too.
func turn(b *testing.B, g *gentle) context.Context {
	ctx, cancel := context.WithTimeout(b.Context(), 4*time.Second)
	if g == nil {
		b.Cleanup(cancel)
		return ctx
	}
	both, stop := context.WithCancel(b.Context())
	go func() {
		defer stop()
		defer cancel()
		g.purge(ctx, b.Context())
	}()
	return both
}

// gentle purges as the processor does: it rests four times as long as it works.
type gentle struct {
	l          *offsets.Ledger
	db         *tablestest.DB
	keys       int64
	passed     int64
	took       time.Duration
	everywhere bool
	err        error
}

// purge goes on until the turn ends; its statements are not cut.
func (g *gentle) purge(turn, work context.Context) {
	start := time.Now()
	defer func() { g.took += time.Since(start) }()
	for turn.Err() == nil {
		began := time.Now()
		purged, err := g.l.Purge(work, g.db.Pool, offsets.Purge{Retain: 30 * day})
		g.keys, g.passed = g.keys+purged.Keys, g.passed+purged.Blocks
		if err != nil || g.passed >= purged.Table {
			g.everywhere, g.err = true, err
			return
		}
		<-time.After(4 * time.Since(began))
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
	return &steady{b: b, db: db, l: l, claim: claims[0], batch: newBenchBatch(100, 0, 0, false)}
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

// percentile is in milliseconds.
func percentile(took []time.Duration, p int) float64 {
	slices.Sort(took)
	return float64(took[len(took)*p/100].Microseconds()) / 1000
}
