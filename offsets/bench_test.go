package offsets_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// BenchmarkAdvanceAndAdmit commits batches of 5000 entries with hashed keys, of
// which some were admitted before.
func BenchmarkAdvanceAndAdmit(b *testing.B) {
	const size = 5000
	for _, duplicates := range []int{0, 5} {
		b.Run(fmt.Sprintf("%d%%duplicates", duplicates), func(b *testing.B) {
			db := tablestest.New(b)
			ledger := newLedger(b, db)
			claims, _, err := ledger.Claim(b.Context(), db.Pool, "bench", offsets.Identity{}, []offsets.Assigned{{Partition: 0}})
			if err != nil {
				b.Fatal(err)
			}
			batch := newBenchBatch(size, duplicates)
			c := claims[0]
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				batch.next()
				b.StartTimer()
				c = benchBatch(b, db, ledger, c, batch.entries)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(time.Microsecond)/float64(b.N*size), "µs/entry")
		})
	}
}

func benchBatch(b *testing.B, db *tablestest.DB, ledger *offsets.Ledger, c offsets.Claim, entries []offsets.Entry) offsets.Claim {
	ctx := context.Background()
	tx, err := db.Pool.Begin(ctx)
	if err != nil {
		b.Fatal(err)
	}
	to := offsets.Position{Next: c.Next + int64(len(entries)), Records: int64(len(entries))}
	c, _, err = ledger.AdvanceAndAdmit(ctx, tx, c, to, entries)
	if err != nil {
		b.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		b.Fatal(err)
	}
	return c
}

// benchEntries is a batch whose first entries have the keys of the batch before.
type benchEntries struct {
	entries    []offsets.Entry
	duplicates int
	random     *rand.ChaCha8
}

func newBenchBatch(size, percent int) *benchEntries {
	b := &benchEntries{entries: make([]offsets.Entry, size), duplicates: size * percent / 100, random: rand.NewChaCha8([32]byte{})}
	for i := range b.entries {
		b.entries[i].Offset = int64(i - size)
		b.entries[i].Key = b.key()
	}
	return b
}

func (b *benchEntries) next() {
	for i := range b.entries {
		b.entries[i].Offset += int64(len(b.entries))
		if i >= b.duplicates {
			b.entries[i].Key = b.key()
		}
	}
}

func (b *benchEntries) key() (key [16]byte) {
	binary.NativeEndian.PutUint64(key[:8], b.random.Uint64())
	binary.NativeEndian.PutUint64(key[8:], b.random.Uint64())
	return key
}
