package offsets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// oldKeys adds n keys of partition p and the offsets from first on, an age old.
func oldKeys(db *tablestest.DB, handler string, p, first, n int, age string) {
	db.Exec(`insert into processed_message (key, record_offset, payload_sum, partition, handler, processed_at)
		select gen_random_uuid(), g, g, $2::int, h.id, now() - $5::text::interval
		from handler as h, generate_series($3::bigint, $3::bigint + $4::bigint - 1) as g where h.name = $1`, handler, p, first, n, age)
}

// walk purges until it has been everywhere, and returns how many keys went.
func walk(ctx context.Context, l *offsets.Ledger, db offsets.DB, p offsets.Purge) (keys int64, err error) {
	for passed := int64(0); ; {
		purged, err := l.Purge(ctx, db, p)
		if err != nil {
			return keys, err
		}
		keys, passed = keys+purged.Keys, passed+purged.Blocks
		if passed >= purged.Table && !purged.Busy {
			return keys, nil
		}
	}
}

const day = 24 * time.Hour

// TestPurge proves that a walk purges what is older, whatever the size of its
// transactions, and nothing else: not younger keys, not another handler's. The
// floors are the highest offsets purged, and never go down.
func TestPurge(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 7, 300, 5000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			db := tablestest.New(t)
			l := newLedger(t, db)
			db.Exec(`insert into handler (name) values ('other')`)
			oldKeys(db, "shop", 0, 0, 200, "31 days")
			oldKeys(db, "shop", 1, 500, 300, "31 days")
			oldKeys(db, "shop", 0, 200, 150, "29 days")
			oldKeys(db, "other", 0, 0, 100, "31 days")
			oldKeys(db, "shop", 1, 100, 50, "31 days")
			keys, err := walk(t.Context(), l, db.Pool, offsets.Purge{Retain: 30 * day, Limit: limit})
			if err != nil || keys != 550 {
				t.Fatalf("purged %d keys: %v", keys, err)
			}
			const left = `select string_agg(name || ' ' || n, ', ' order by name) from (
				select name, count(*) as n from processed_message join handler on id = handler group by name) as x`
			if got := db.Value(left); got != "other 100, shop 150" {
				t.Errorf("left are %s", got)
			}
			floorsAre(t, l, db, map[int32]int64{0: 199, 1: 799})

			oldKeys(db, "shop", 1, 7, 1, "31 days")
			if keys, err := walk(t.Context(), l, db.Pool, offsets.Purge{Retain: 30 * day}); err != nil || keys != 1 {
				t.Fatalf("purged %d keys: %v", keys, err)
			}
			floorsAre(t, l, db, map[int32]int64{0: 199, 1: 799})
		})
	}
}

func floorsAre(t *testing.T, l *offsets.Ledger, db *tablestest.DB, want map[int32]int64) {
	t.Helper()
	floors, err := l.Floors(t.Context(), db.Pool)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int32]int64{}
	for _, f := range floors {
		if f.PurgedAt.IsZero() {
			t.Errorf("the floor of partition %d has no time", f.Partition)
		}
		got[f.Partition] = f.Offset
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("floors: %s", diff)
	}
}

// TestFloorsOfASharedHandler proves that a pipeline of another topic, which shares
// the handler, is told of the floors too: a key does not say whose it was.
func TestFloorsOfASharedHandler(t *testing.T) {
	db := tablestest.New(t)
	l := newLedger(t, db)
	oldKeys(db, "shop", 3, 0, 10, "2 days")
	if _, err := walk(t.Context(), l, db.Pool, offsets.Purge{Retain: day}); err != nil {
		t.Fatal(err)
	}
	floorsAre(t, offsets.New(offsets.Options{Schema: db.Schema, Group: "b", Topic: "payments", Handler: "shop"}), db, map[int32]int64{3: 9})
	floorsAre(t, offsets.New(offsets.Options{Schema: db.Schema, Group: "b", Topic: "orders"}), db, map[int32]int64{})
}

// TestPurgeWalksByWindows proves that no transaction looks at more than its
// window, that it does not read the table from its start each time, and that
// the walk comes around.
func TestPurgeWalksByWindows(t *testing.T) {
	db := tablestest.New(t)
	l := newLedger(t, db)
	oldKeys(db, "shop", 0, 0, 120_000, "1 hour")
	oldKeys(db, "shop", 0, 120_000, 10, "2 days")
	var steps []offsets.Purged
	for range 3 {
		purged, err := l.Purge(t.Context(), db.Pool, offsets.Purge{Retain: day})
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, purged)
	}
	total := steps[0].Table
	if total <= 1024 {
		t.Fatalf("the table has %d blocks only", total)
	}
	want := []offsets.Purged{{Blocks: 1024, Table: total}, {Keys: 10, Blocks: total - 1024, Table: total}, {Blocks: 1024, Table: total}}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
	for _, s := range offsets.Statements(db.Schema) {
		if s.Name == "purge" {
			checkPlan(t, db, s.SQL)
		}
	}
}

// checkPlan holds that the rows are found by their place.
func checkPlan(t *testing.T, db *tablestest.DB, sql string) {
	t.Helper()
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), "prepare purge as "+sql); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `explain execute purge('(0,0)', '(1024,0)', 1::smallint, '1 day', 5000, 'orders')`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	plan := strings.Join(lines, "\n")
	if err != nil || !strings.Contains(plan, "Tid Range Scan on processed_message") || strings.Contains(plan, "Seq Scan on processed_message") {
		t.Errorf("%s\n%v", plan, err)
	}
}

// TestPurgeTakesTurns proves that a purger passes by while another one is at it
// or has just been, without waiting; and that a step in the future, left by a
// server whose clock was ahead, does not stop the purge.
func TestPurgeTakesTurns(t *testing.T) {
	db := tablestest.New(t)
	l := newLedger(t, db)
	oldKeys(db, "shop", 0, 0, 10, "2 days")
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from handler for update`); err != nil {
		t.Fatal(err)
	}
	busy := func(idle time.Duration, want bool) {
		t.Helper()
		purged, err := l.Purge(t.Context(), db.Pool, offsets.Purge{Retain: day, Limit: 2, Idle: idle})
		if err != nil || purged.Busy != want || want && purged.Keys > 0 {
			t.Errorf("%+v, %v; want busy %v", purged, err, want)
		}
	}
	busy(0, true)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	busy(time.Hour, false)
	busy(time.Hour, true)
	busy(0, false)
	db.Exec(`update handler set purged_at = now() + interval '1 hour'`)
	busy(time.Hour, false)
	db.Exec(`update handler set purge_block = 1000000`) // the table was made smaller
	busy(0, false)
	if n := db.Value(`select count(*) from processed_message`); n != "2" {
		t.Errorf("%s keys are left", n)
	}
}

// TestPurgeRefuses proves that a purge says what is missing, and purges nothing.
func TestPurgeRefuses(t *testing.T) {
	db := tablestest.New(t)
	l := newLedger(t, db)
	oldKeys(db, "shop", 0, 0, 10, "2 days")
	for _, p := range []offsets.Purge{{}, {Retain: -1}, {Retain: day, Limit: -1}, {Retain: day, Idle: -1}} {
		if _, err := l.Purge(t.Context(), db.Pool, p); err == nil || !strings.Contains(err.Error(), "retain must be positive") {
			t.Errorf("%+v: %v", p, err)
		}
	}
	unregistered := offsets.New(offsets.Options{Schema: db.Schema, Group: "shop", Topic: "orders"})
	if _, err := unregistered.Purge(t.Context(), db.Pool, offsets.Purge{Retain: day}); err == nil || !strings.Contains(err.Error(), "Register") {
		t.Errorf("without a handler's id: %v", err)
	}
	if n := db.Value(`select count(*) from processed_message`); n != "10" {
		t.Errorf("%s keys are left", n)
	}
}

// TestPurgeWaitsForNobody proves that a row which somebody holds locked ends the
// step soon, instead of making those wait who insert keys that it has deleted;
// and that what is not committed yet is not purged, whatever its age.
func TestPurgeWaitsForNobody(t *testing.T) {
	db := tablestest.New(t)
	l := newLedger(t, db)
	oldKeys(db, "shop", 0, 0, 10, "2 days")
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from processed_message where record_offset = 5 for update`); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Purge(t.Context(), db.Pool, offsets.Purge{Retain: day}); err == nil || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("a row is locked: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := db.Value(`select count(*) from processed_message`); n != "10" {
		t.Errorf("%s keys are left of a step that failed", n)
	}

	inserting, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inserting.Exec(t.Context(), `insert into processed_message select gen_random_uuid(), 99, 0, now() - interval '9 days', 0, id from handler`); err != nil {
		t.Fatal(err)
	}
	if keys, err := walk(t.Context(), l, db.Pool, offsets.Purge{Retain: day}); err != nil || keys != 10 {
		t.Errorf("purged %d keys: %v", keys, err)
	}
	if err := inserting.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := db.Value(`select string_agg(record_offset::text, ' ') from processed_message`); got != "99" {
		t.Errorf("left is %s", got)
	}
}

// TestPurgeBesideIntake proves that purgers beside each other and beside workers
// that insert, also keys which are being purged, neither wait for ever nor fail
// anybody: each old key is purged once or found as a duplicate, and the new
// ones stay.
func TestPurgeBesideIntake(t *testing.T) {
	db := tablestest.New(t)
	l := newLedger(t, db)
	const old, batches, size = 20_000, 20, 200
	oldKeys(db, "shop", 0, 0, old, "2 days")
	again := db.Rows(`select key, record_offset from processed_message order by record_offset limit $1`, batches*size/2)
	var purgedKeys, fresh atomic.Int64
	g, ctx := errgroup.WithContext(t.Context())
	for range 2 {
		g.Go(func() error {
			keys, err := walk(ctx, l, db.Pool, offsets.Purge{Retain: day, Limit: 100})
			purgedKeys.Add(keys)
			return err
		})
	}
	g.Go(func() error {
		for b := range batches {
			entries := intake(again[b*size/2:(b+1)*size/2], b, size)
			err := offsets.ErrKeyVanished
			for errors.Is(err, offsets.ErrKeyVanished) {
				err = pgx.BeginFunc(ctx, db.Pool, func(tx pgx.Tx) error {
					admissions, err := l.Admit(ctx, tx, entries)
					if err == nil {
						fresh.Add(offsets.Count(admissions).Fresh)
					}
					return err
				})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	// What comes again after its purge is new; what came before it was a duplicate.
	if purgedKeys.Load() != old {
		t.Errorf("%d keys were purged, want %d", purgedKeys.Load(), old)
	}
	if got, want := db.Value(`select count(*) from processed_message`), fmt.Sprint(fresh.Load()); got != want {
		t.Errorf("%s keys are left, want the %s fresh ones", got, want)
	}
	floorsAre(t, l, db, map[int32]int64{0: old - 1})
}

// intake makes a batch of old keys that come again and of new ones.
func intake(again [][]string, batch, size int) []offsets.Entry {
	var entries []offsets.Entry
	for i := range size {
		e := offsets.Entry{Partition: 1, Offset: int64(batch*size + i), Key: keyOf(fmt.Sprintf("n%d", batch*size+i))}
		if i < len(again) {
			e.Key = parseKey(again[i][0])
		}
		entries = append(entries, e)
	}
	return entries
}
