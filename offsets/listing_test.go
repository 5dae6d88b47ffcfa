package offsets_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// watched forwards to the database, and notes how many rows each statement has
// answered with.
type watched struct {
	offsets.DB
	pages []*watchedRows
}

type watchedRows struct {
	pgx.Rows
	n int
}

func (w *watched) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := w.DB.Query(ctx, sql, args...)
	page := &watchedRows{Rows: rows}
	w.pages = append(w.pages, page)
	return page, err
}

func (r *watchedRows) Next() bool {
	more := r.Rows.Next()
	if more {
		r.n++
	}
	return more
}

// setAside writes n dead letters with values of the given size at the offsets
// from 0 on, over four partitions and three reasons, and returns their ledger.
func setAside(tb testing.TB, db *tablestest.DB, n, size int) *offsets.Ledger {
	tb.Helper()
	ledger := offsets.New(offsets.Options{Schema: db.Schema, Group: "g", Topic: "t"})
	noError(tb, ledger.Register(tb.Context(), db.Pool))
	db.Exec(`insert into dead_letter (consumer_group, topic, partition, record_offset, topic_id, handler, reason, detail, column_name,
  record_time, record_key, record_value, value_size)
select 'g', 't', i % 4, i / 4, '00000000-0000-0000-0000-000000000001', h.id, ('{decode,not_null,check}'::text[])[1 + i % 3], 'because',
  case when i % 3 = 1 then 'amount' end, now(), convert_to('k' || i, 'UTF8'), convert_to(repeat('x', $2), 'UTF8'), $2
from generate_series(0, $1::int - 1) as i, handler h`, n, size)
	db.Exec(`analyze dead_letter`) // as the server does by itself after a while
	return ledger
}

func noError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// list reads a listing to its end and calls each between two dead letters.
func list(tb testing.TB, ledger *offsets.Ledger, db offsets.DB, f offsets.DeadLetterFilter, each func(*offsets.StoredDeadLetter)) (n int) {
	tb.Helper()
	for d, err := range ledger.DeadLetters(tb.Context(), db, f) {
		noError(tb, err)
		n++
		each(d)
	}
	return n
}

// heap is the memory in use, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Proves that 200,000 dead letters are listed in the memory of one page, in
// order, and that no statement and no transaction is open between two pages.
func TestListingIsBounded(t *testing.T) {
	const all = 200_000
	db := tablestest.New(t)
	ledger := setAside(t, db, all, 200)
	for _, without := range []bool{true, false} {
		through := &watched{DB: db.Pool}
		before, most := heap(), uint64(0)
		started := time.Now()
		last := offsets.At{Partition: -1}
		n := list(t, ledger, through, offsets.DeadLetterFilter{WithoutValues: without}, func(d *offsets.StoredDeadLetter) {
			at := offsets.At{Partition: d.Record.Partition, Offset: d.Record.Offset}
			if at.Partition < last.Partition || at.Partition == last.Partition && at.Offset <= last.Offset {
				t.Fatalf("%v follows %v", at, last)
			}
			if without != (d.Record.Value == nil) || d.ValueSize != 200 || d.ByPosition {
				t.Fatalf("without values is %v, and there is %+v", without, d)
			}
			if last = at; at.Offset%10_000 == 0 {
				most = max(most, heap())
				if busy := db.Pool.Stat().AcquiredConns(); busy != 0 {
					t.Fatalf("%d connections are in use between two dead letters", busy)
				}
			}
		})
		widest := 0
		for _, p := range through.pages {
			widest = max(widest, p.n)
		}
		if n != all || widest > offsets.PageLetters || len(through.pages) > all/offsets.PageLetters+1 {
			t.Errorf("listed %d in %d pages of at most %d", n, len(through.pages), widest)
		}
		t.Logf("without values %v: %d in %v, %d pages, %d KiB of heap at most beyond the start", without, n, time.Since(started).Round(time.Millisecond),
			len(through.pages), (int64(most)-int64(before))/1024)
		if most > before+32<<20 {
			t.Errorf("the heap grew by %d MiB", (most-before)>>20)
		}
	}
}

// Proves that a page of large values ends by its bytes, and that none is lost at
// the cut; without the values it does not end there.
func TestListingBoundsBytes(t *testing.T) {
	t.Parallel()
	const all, size = 40, 1 << 20
	db := tablestest.New(t)
	ledger := setAside(t, db, all, size)
	for without, pages := range map[bool]int{true: 2, false: all*size/offsets.PageBytes + 1} {
		through := &watched{DB: db.Pool}
		n := list(t, ledger, through, offsets.DeadLetterFilter{WithoutValues: without}, func(*offsets.StoredDeadLetter) {})
		if n != all || len(through.pages) != pages {
			t.Errorf("without values %v: listed %d in %d pages, want %d in %d", without, n, len(through.pages), all, pages)
		}
	}
}

// Proves that a listing which others resolve and add to meanwhile lists none
// twice, none that came after its start, and all that wait until the end; and
// one in all states, all that were there.
func TestListingWhileOthersDecide(t *testing.T) {
	t.Parallel()
	const all = 3000
	for name, states := range map[string][]string{"dead": nil, "all": {offsets.StateDead, offsets.StateReplayed, offsets.StateDiscarded}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tablestest.New(t)
			ledger := setAside(t, db, all, 1)
			seen := map[int64]int{}
			steps := 0
			list(t, ledger, db.Pool, offsets.DeadLetterFilter{States: states}, func(d *offsets.StoredDeadLetter) {
				seen[d.ID]++
				if len(seen)%pageStep != 0 {
					return
				}
				steps++ // resolves some before and some behind, and adds some in front and at the end
				db.Exec(`update dead_letter set state = 'discarded', resolved_at = now() where id % 7 = $1`, steps)
				db.Exec(`insert into dead_letter (consumer_group, topic, partition, record_offset, topic_id, handler, reason, detail, record_time)
select consumer_group, topic, partition, record_offset + 10000 * $1::int, topic_id, handler, reason, detail, record_time from dead_letter where id <= 40`, steps)
			})
			if steps < 5 {
				t.Fatalf("only %d steps were taken", steps)
			}
			for id, times := range seen {
				if times != 1 || id > all {
					t.Errorf("dead letter %d was listed %d times", id, times)
				}
			}
			for _, row := range db.Rows(`select id, state from dead_letter where id <= $1`, all) {
				var id int64
				_, err := fmt.Sscan(row[0], &id)
				noError(t, err)
				if seen[id] == 0 && (row[1] == offsets.StateDead || states != nil) {
					t.Errorf("dead letter %s, which is %s, was left out", row[0], row[1])
				}
			}
		})
	}
}

// pageStep is less than a page, so that changes fall within pages and between.
const pageStep = 333

// Proves that a limit holds across pages, and that the filter's parts select.
func TestListingSelects(t *testing.T) {
	t.Parallel()
	db := tablestest.New(t)
	ledger := setAside(t, db, 1200, 1)
	db.Exec(`update dead_letter set parked = true where id = 9; update dead_letter set record_value = null where id = 10;
update dead_letter set fixed_value = 'f' where id = 11; update dead_letter set created_at = created_at - interval '1 day' where id <= 5`)
	yesterday := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		filter offsets.DeadLetterFilter
		want   int
	}{
		"all":        {offsets.DeadLetterFilter{}, 1200},
		"limit":      {offsets.DeadLetterFilter{Limit: 777}, 777},
		"one page":   {offsets.DeadLetterFilter{Limit: offsets.PageLetters}, offsets.PageLetters},
		"reason":     {offsets.DeadLetterFilter{Reasons: []string{"check", "decode"}}, 800},
		"partition":  {offsets.DeadLetterFilter{Partitions: []int32{3}}, 300},
		"ids":        {offsets.DeadLetterFilter{IDs: []int64{1, 2, 5000}}, 2},
		"until":      {offsets.DeadLetterFilter{Until: yesterday}, 5},
		"since":      {offsets.DeadLetterFilter{Since: yesterday}, 1195},
		"record key": {offsets.DeadLetterFilter{RecordKey: []byte("k8")}, 1},
		"parked":     {offsets.DeadLetterFilter{Parked: true}, 1},
		"replayed":   {offsets.DeadLetterFilter{States: []string{offsets.StateReplayed}}, 0},
	} {
		n := list(t, ledger, db.Pool, c.filter, func(d *offsets.StoredDeadLetter) {
			if d.ByPosition != (d.ID == 10) || d.Fixed != (d.ID == 11) || d.Parked != (d.ID == 9) {
				t.Errorf("%s: %+v", name, d)
			}
		})
		if n != c.want {
			t.Errorf("%s: listed %d, want %d", name, n, c.want)
		}
	}
	for d, err := range ledger.DeadLetters(t.Context(), db.Pool, offsets.DeadLetterFilter{}) {
		if noError(t, err); d.Record.Offset == 0 {
			break // a reader may stop at any time
		}
	}
}

// Proves that dead letters are counted in groups, whatever the limit, and that a
// database that is gone is an error of the listing and not its end.
func TestCountDeadLetters(t *testing.T) {
	t.Parallel()
	db := tablestest.New(t)
	ledger := setAside(t, db, 10, 1)
	for by, want := range map[offsets.Grouping]string{
		offsets.GroupByReason:     "decode 4, check 3, not_null 3",
		offsets.GroupByColumn:     " 7, amount 3",
		offsets.GroupByConstraint: " 10",
		offsets.GroupByPartition:  "0 3, 1 3, 2 2, 3 2",
	} {
		counts, err := ledger.CountDeadLetters(t.Context(), db.Pool, offsets.DeadLetterFilter{Limit: 1}, by)
		noError(t, err)
		var got []string
		for _, c := range counts {
			if c.Oldest.IsZero() || c.Newest.Before(c.Oldest) {
				t.Errorf("by %s: %+v", by, c)
			}
			got = append(got, fmt.Sprintf("%s %d", c.Name, c.Count))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("by %s: %s, want %s", by, text, want)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var last error
	for _, last = range ledger.DeadLetters(gone, db.Pool, offsets.DeadLetterFilter{}) {
		continue
	}
	if last == nil {
		t.Error("a listing that could not be read has no error")
	}
}
