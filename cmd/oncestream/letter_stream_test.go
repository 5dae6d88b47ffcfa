package main

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// heapWatch counts lines, and looks at the heap now and then.
type heapWatch struct {
	lines, bytes int
	most         uint64
}

func (w *heapWatch) Write(p []byte) (int, error) {
	if before := w.bytes; before>>22 != (before+len(p))>>22 { // every 4 MiB
		w.most = max(w.most, heapInUse())
	}
	w.lines += bytes.Count(p, []byte("\n"))
	w.bytes += len(p)
	return len(p), nil
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Proves that 200,000 dead letters are listed, and exported with their values,
// in memory that does not grow with their number: all of them would be several
// times the bound.
func TestLettersStream(t *testing.T) {
	const all, size, bound = 200_000, 300, 16 << 20
	db := tablestest.New(t)
	ledger := offsets.New(offsets.Options{Schema: db.Schema, Group: "g", Topic: "t"})
	noErr(t, ledger.Register(t.Context(), db.Pool))
	db.Exec(`insert into dead_letter (consumer_group, topic, partition, record_offset, topic_id, handler, reason, detail, record_time, record_key,
  record_value, value_size)
select 'g', 't', i % 4, i, '00000000-0000-0000-0000-000000000001', h.id, 'check', 'because', now(), convert_to('k' || i, 'UTF8'),
  convert_to(repeat('x', $2), 'UTF8'), $2
from generate_series(1, $1::int) as i, handler h`, all, size)
	db.Exec(`analyze dead_letter`)
	for name, c := range map[string]struct {
		write func(ctx context.Context, out *heapWatch, conn *pgx.Conn) error
		extra int // lines beside those of the dead letters
	}{
		"list": {func(ctx context.Context, out *heapWatch, conn *pgx.Conn) error {
			return (&letterList{filter: offsets.DeadLetterFilter{Limit: 2 * all}}).list(ctx, out, conn, ledger, time.Now())
		}, 2},
		"export": {func(ctx context.Context, out *heapWatch, conn *pgx.Conn) error {
			return exportLetters(out, ledger.DeadLetters(ctx, conn, offsets.DeadLetterFilter{}), true, nil)
		}, 0},
	} {
		conn, err := db.Pool.Acquire(t.Context())
		noErr(t, err)
		before, started := heapInUse(), time.Now()
		var out heapWatch
		noErr(t, c.write(t.Context(), &out, conn.Conn()))
		conn.Release()
		t.Logf("%s: %d lines, %d MiB in %v, %d KiB of heap beyond the start", name, out.lines, out.bytes>>20,
			time.Since(started).Round(time.Millisecond), (int64(out.most)-int64(before))/1024)
		if out.lines != all+c.extra {
			t.Errorf("%s: %d lines, want %d", name, out.lines, all+c.extra)
		}
		if out.most == 0 || out.most > before+bound {
			t.Errorf("%s: the heap was %d MiB at first, and %d MiB at most", name, before>>20, out.most>>20)
		}
	}
}
