package offsets_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// A look at all claims names those that do not hold any more: fenced, gone back
// by offset, by epoch or altogether. Those that hold are not named, also when
// they were advanced or halted since. On a server that takes no writes nothing is
// said to have gone back.
func TestCheck(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	var assigned []offsets.Assigned
	for p := range int32(7) {
		assigned = append(assigned, offsets.Assigned{Partition: p, Start: 10})
	}
	claims, _, err := ledger.Claim(t.Context(), db.Pool, "worker", offsets.Identity{}, assigned)
	if err != nil {
		t.Fatal(err)
	}
	db.Exec(`update consumer_offset set epoch = 2 where partition = 1`)
	db.Exec(`update consumer_offset set first_offset = 9, next_offset = 9 where partition = 2`)
	db.Exec(`update consumer_offset set epoch = 0 where partition = 3`)
	db.Exec(`delete from consumer_offset where partition = 4`)
	db.Exec(`update consumer_offset set next_offset = 20 where partition = 5`)
	db.Exec(`update consumer_offset set state = 'halted', reason = 'x' where partition = 6`)
	want := map[int32]error{1: offsets.ErrFenced, 2: offsets.ErrWentBack, 3: offsets.ErrWentBack, 4: offsets.ErrWentBack}
	got, err := ledger.Check(t.Context(), db.Pool, claims)
	if err != nil {
		t.Fatal(err)
	}
	for p := range int32(7) {
		if !errors.Is(got[p], want[p]) || (got[p] == nil) != (want[p] == nil) {
			t.Errorf("partition %d: %v, want %v", p, got[p], want[p])
		}
	}
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `set transaction read only`); err != nil {
		t.Fatal(err)
	}
	if got, err := ledger.Check(t.Context(), tx, claims); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("on a read-only server: %v, %v", got, err)
	}
	if got, err := ledger.Check(t.Context(), tx, claims[:2]); err != nil || !errors.Is(got[1], offsets.ErrFenced) {
		t.Errorf("on a read-only server where nothing went back: %v, %v", got, err)
	}
}
