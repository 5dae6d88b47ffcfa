package processor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
)

// records returns the records [from, to) with values of the size.
func records(from, to int64, size int) []schema.Record {
	var rs []schema.Record
	for o := from; o < to; o++ {
		rs = append(rs, schema.Record{Offset: o, Value: make([]byte, size)})
	}
	return rs
}

func chunkOf(rs []schema.Record, end int64) chunk {
	c := chunk{records: rs, end: end, arrived: time.Now()}
	for i := range rs {
		c.bytes += size(&rs[i])
	}
	return c
}

// Proves that whatever is polled, in whatever pieces, with gaps, and with
// records that come again, the batches hold each offset once, in order, within
// their bounds, and end where the chunks end (cases A13 and A15).
func TestQueueKeepsOrderAndBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := Batch{MaxRecords: rapid.IntRange(1, 10).Draw(t, "max records"), MaxBytes: rapid.IntRange(1, 3000).Draw(t, "max bytes")}
		q := newQueue(limit)
		start := rapid.Int64Range(0, 5).Draw(t, "start")
		q.openAt(start)
		var sent []int64
		next := start
		for range rapid.IntRange(0, 8).Draw(t, "chunks") {
			from := max(0, next+rapid.Int64Range(-6, 3).Draw(t, "jump")) // back: a repeat; ahead: a gap
			to := from + rapid.Int64Range(0, 12).Draw(t, "length")
			end := to + rapid.Int64Range(0, 2).Draw(t, "markers")
			for o := max(from, next); o < to; o++ {
				sent = append(sent, o)
			}
			dropped, _ := q.push(chunkOf(records(from, to, rapid.IntRange(0, 500).Draw(t, "size")), end))
			if want := min(max(next-from, 0), to-from); int64(dropped) != want {
				t.Fatalf("dropped %d of [%d, %d) behind %d, want %d", dropped, from, to, next, want)
			}
			next = max(next, end)
		}
		q.fail(errStopped)
		var got []int64
		end := start
		for {
			chunks, err := q.take(context.Background())
			if err != nil {
				if !errors.Is(err, errStopped) {
					t.Fatal(err)
				}
				break
			}
			n, bytes, before := 0, 0, 0
			for _, c := range chunks {
				if c.end <= end {
					t.Fatalf("a chunk ends at %d after %d", c.end, end)
				}
				end = c.end
				for i := range c.records {
					got = append(got, c.records[i].Offset)
					n++
					before = bytes
					bytes += size(&c.records[i])
				}
			}
			if n > limit.MaxRecords || before >= limit.MaxBytes {
				t.Fatalf("a batch of %d records and %d bytes, %d of them before the last record", n, bytes, before)
			}
		}
		if end != next || len(got) != len(sent) || q.size() != 0 || q.records != 0 {
			t.Fatalf("ended at %d (want %d) with %d of %d records; %d bytes and %d records left", end, next, len(got), len(sent), q.size(), q.records)
		}
		for i := range got {
			if got[i] != sent[i] {
				t.Fatalf("record %d is offset %d, want %d", i, got[i], sent[i])
			}
		}
	})
}

// Proves that a batch waits for others no longer than MaxWait from the arrival
// of its first record, and not at all when it is full.
func TestQueueWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(Batch{MaxRecords: 10, MaxBytes: 1 << 20, MaxWait: time.Second})
		q.openAt(0)
		begin := time.Now()
		go func() {
			if err := sleep(t.Context(), 500*time.Millisecond); err == nil {
				q.push(chunkOf(records(0, 3, 1), 3))
				q.push(chunkOf(records(3, 4, 1), 4))
			}
		}()
		chunks, err := q.take(t.Context())
		if err != nil || len(chunks) != 2 || time.Since(begin) != 1500*time.Millisecond {
			t.Errorf("after %v: %d chunks, %v", time.Since(begin), len(chunks), err)
		}
		begin = time.Now()
		q.push(chunkOf(records(4, 14, 1), 14))
		if chunks, err := q.take(t.Context()); err != nil || len(chunks) != 1 || time.Since(begin) != 0 {
			t.Errorf("a full batch after %v: %d chunks, %v", time.Since(begin), len(chunks), err)
		}
	})
}

// Proves that a queue lets nothing in before its position is known, after it
// was shut, or after it failed, and asks for a pause then; and that it asks for
// one when it is full, until it has room.
func TestQueueAsksForPause(t *testing.T) {
	q := newQueue(Batch{MaxRecords: 2, MaxBytes: 1 << 20})
	push := func(from, to int64) bool {
		_, pause := q.push(chunkOf(records(from, to, 1), to))
		return pause
	}
	if !push(0, 1) || q.size() != 0 || q.roomy() {
		t.Error("a closed queue has let records in")
	}
	q.openAt(0)
	if push(0, 1) || !push(1, 3) || q.roomy() {
		t.Error("a queue of a batch is not full, or one of less is")
	}
	if _, err := q.take(t.Context()); err != nil || !q.roomy() {
		t.Errorf("a queue of half a batch has no room (%v)", err)
	}
	q.fail(errStopped)
	if !push(4, 5) {
		t.Error("a failed queue lets records in")
	}
	q.shut()
	if q.size() != 0 || !push(5, 6) {
		t.Error("a queue that was shut holds records")
	}
}
