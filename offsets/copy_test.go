package offsets_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// copyOnce passes entries as one batch, by look and copy, and rolls back after an
// error.
func copyOnce(t *testing.T, db *tablestest.DB, l *offsets.Ledger, entries []offsets.Entry) ([]offsets.Admission, error) {
	t.Helper()
	first, last := entries[0], entries[len(entries)-1]
	claims, _, err := l.Claim(t.Context(), db.Pool, "A", offsets.Identity{}, []offsets.Assigned{{Partition: first.Partition, Start: first.Offset}})
	if err != nil {
		t.Fatal(err)
	}
	var admissions []offsets.Admission
	err = pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) (err error) {
		_, admissions, err = l.AdvanceAndAdmit(t.Context(), tx, claims[0], offsets.Position{Next: last.Offset + 1}, entries)
		return err
	})
	return admissions, err
}

// TestCopy proves that what is copied is what was given, to the bounds of each
// column, and that keys which repeat within the batch are folded into the first.
func TestCopy(t *testing.T) {
	db := tablestest.New(t)
	l := newLedger(t, db)
	high, low := [16]byte{0: 0xff, 15: 0xff}, [16]byte{}
	entries := []offsets.Entry{
		{Key: high, Partition: math.MaxInt32, Offset: 1 << 40, PayloadSum: math.MinInt64},
		{Key: low, Partition: math.MaxInt32, Offset: 1<<40 + 1, PayloadSum: math.MaxInt64},
		{Key: high, Partition: math.MaxInt32, Offset: 1<<40 + 2, PayloadSum: math.MinInt64},
		{Key: low, Partition: math.MaxInt32, Offset: 1<<40 + 3, PayloadSum: -1},
	}
	admissions, err := copyOnce(t, db, l, entries)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := offsets.Count(admissions), (offsets.Counts{Fresh: 2, Producer: 1, Conflicts: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, want := range entries[:2] {
		got, found, err := l.FindKey(t.Context(), db.Pool, want.Key)
		if err != nil || !found || got.Entry != want || got.At.IsZero() || got.Result != nil {
			t.Errorf("got %+v %t %v, want %+v", got, found, err, want)
		}
	}
	for _, a := range admissions[2:] {
		if a.First != entries[0] && a.First != entries[1] {
			t.Errorf("the first of its key is %+v", a.First)
		}
	}
}

// TestCopySkipped proves that a copy is believed by its row count only: a trigger
// that skips rows would let effects happen whose keys nobody remembers.
func TestCopySkipped(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create function skip() returns trigger language plpgsql as 'begin return null; end';
		create trigger skip before insert on processed_message for each row when (new.record_offset = 1) execute function skip()`)
	_, err := copyOnce(t, db, newLedger(t, db), []offsets.Entry{{Key: keyOf("k0")}, {Key: keyOf("k1"), Offset: 1}})
	if err == nil || !strings.Contains(err.Error(), "offsets: admit 2 keys from orders/0@0: 1 of 2 keys were written") {
		t.Errorf("got %v", err)
	}
}

// TestContested proves that only a key which is there is told as contested, and
// that an error of another kind stays the server's.
func TestContested(t *testing.T) {
	db := tablestest.New(t)
	l := newLedger(t, db)
	entries := []offsets.Entry{{Key: keyOf("k0")}, {Key: keyOf("k1"), Offset: 1}}
	admitOnce(t, db, l, entries[1:])
	l.BlindLook()
	if _, err := copyOnce(t, db, l, entries); !errors.Is(err, offsets.ErrKeyContested) {
		t.Errorf("got %v, want it contested", err)
	}
	if got := db.Value("select count(*) from processed_message"); got != "1" {
		t.Errorf("%s keys are left of a contested batch, want the 1 from before", got)
	}
	db.Exec("alter table processed_message add check (record_offset <> 0)")
	_, err := copyOnce(t, db, l, entries[:1])
	if err == nil || errors.Is(err, offsets.ErrKeyContested) || !strings.Contains(err.Error(), "SQLSTATE 23514") {
		t.Errorf("got %v, want the violation of the check", err)
	}
}
