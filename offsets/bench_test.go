package offsets_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

const (
	benchSize        = 5000 // entries of a batch
	benchConnections = 2
	benchDuplicates  = 5 // percent
)

// BenchmarkAdvanceAndAdmit commits batches by two connections at once, with keys
// that are random or ordered by time, of which some were admitted before: by look
// and copy, and by the insert that a contested batch needs. An operation is a
// batch of each connection. Beside the time, it reports what the two backends
// have used of a processor (Linux only, in steps of 10 ms).
func BenchmarkAdvanceAndAdmit(b *testing.B) {
	ways := []struct {
		name  string
		admit admitFunc
	}{
		{"copy", (*offsets.Ledger).AdvanceAndAdmit},
		{"insert", (*offsets.Ledger).AdvanceAndAdmitContested},
	}
	for _, keys := range []string{"random", "ordered"} {
		for _, way := range ways {
			b.Run(keys+"/"+way.name, func(b *testing.B) { benchAdmit(b, keys == "ordered", way.admit) })
		}
	}
}

type admitFunc func(*offsets.Ledger, context.Context, pgx.Tx, offsets.Claim, offsets.Position, []offsets.Entry) (offsets.Claim, []offsets.Admission, error)

func benchAdmit(b *testing.B, ordered bool, admit admitFunc) {
	db := tablestest.New(b, tablestest.Configure(func(c *pgxpool.Config) { c.MaxConns = benchConnections + 2 }))
	ledger := newLedger(b, db)
	writers := make([]*benchWriter, benchConnections)
	for p := range writers {
		writers[p] = newBenchWriter(b, db, ledger, int32(p), ordered, admit)
	}
	backends := func() (used time.Duration) {
		for _, w := range writers {
			used += processorTime(b, w.conn.PgConn().PID())
		}
		return used
	}
	before := backends()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for _, w := range writers {
			w.batch.next()
		}
		b.StartTimer()
		var both errgroup.Group
		for _, w := range writers {
			both.Go(func() error { return w.pass(context.Background()) })
		}
		if err := both.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	entries := float64(b.N * benchSize * benchConnections)
	b.ReportMetric(float64(b.Elapsed())/float64(time.Microsecond)/entries, "µs/entry")
	b.ReportMetric(float64(backends()-before)/float64(time.Microsecond)/entries, "server-µs/entry")
}

// processorTime is what a process of this machine has used of a processor, 0
// where that is not told.
func processorTime(b *testing.B, pid uint32) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	const tick = 10 * time.Millisecond
	var used time.Duration
	_, after, _ := strings.Cut(string(stat), ") ")
	for _, field := range strings.Fields(after)[11:13] { // utime and stime, see proc(5)
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		used += time.Duration(n) * tick
	}
	return used
}

// benchWriter passes the batches of one partition on a connection of its own.
type benchWriter struct {
	conn   *pgx.Conn
	ledger *offsets.Ledger
	admit  admitFunc
	claim  offsets.Claim
	batch  *benchEntries
}

func newBenchWriter(b *testing.B, db *tablestest.DB, ledger *offsets.Ledger, partition int32, ordered bool, admit admitFunc) *benchWriter {
	conn, err := pgx.Connect(b.Context(), db.URL)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close(context.WithoutCancel(b.Context())) })
	claims, _, err := ledger.Claim(b.Context(), conn, "bench", offsets.Identity{}, []offsets.Assigned{{Partition: partition}})
	if err != nil {
		b.Fatal(err)
	}
	return &benchWriter{conn: conn, ledger: ledger, admit: admit, claim: claims[0], batch: newBenchBatch(benchSize, benchDuplicates, partition, ordered)}
}

func (w *benchWriter) pass(ctx context.Context) error {
	tx, err := w.conn.Begin(ctx)
	if err != nil {
		return err
	}
	to := offsets.Position{Next: w.claim.Next + benchSize, Records: benchSize}
	next, admissions, err := w.admit(w.ledger, ctx, tx, w.claim, to, w.batch.entries)
	if err != nil {
		return err
	}
	if n := offsets.Count(admissions); n.Fresh+n.Producer != benchSize {
		return fmt.Errorf("got %+v", n)
	}
	w.claim = next
	return tx.Commit(ctx)
}

// benchEntries is a batch of which the first entries repeat keys of the batch before.
type benchEntries struct {
	entries  []offsets.Entry
	repeated int
	ordered  bool
	made     uint64
	random   *rand.ChaCha8
}

func newBenchBatch(size, percent int, partition int32, ordered bool) *benchEntries {
	b := &benchEntries{
		entries: make([]offsets.Entry, size), repeated: size * percent / 100,
		ordered: ordered, random: rand.NewChaCha8([32]byte{byte(partition)}),
	}
	for i := range b.entries {
		b.entries[i] = offsets.Entry{Key: b.key(), Partition: partition, Offset: int64(i - size)}
	}
	return b
}

func (b *benchEntries) next() {
	size := len(b.entries)
	for i := range b.entries {
		b.entries[i].Offset += int64(size)
		if i < b.repeated {
			b.entries[i].Key = b.entries[size-1-i].Key
		} else {
			b.entries[i].Key = b.key()
		}
	}
}

// key is random, or like a UUID of version 7, of which a few share a millisecond.
func (b *benchEntries) key() (key [16]byte) {
	binary.NativeEndian.PutUint64(key[:8], b.random.Uint64())
	binary.NativeEndian.PutUint64(key[8:], b.random.Uint64())
	if b.ordered {
		b.made++
		binary.BigEndian.PutUint64(key[:8], b.made/50<<16|uint64(key[7]))
		key[6] = 0x70 | key[6]&0xf
	}
	return key
}
