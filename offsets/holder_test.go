package offsets_test

import (
	"testing"
	"time"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// A pid is given to another backend sooner or later. One that did not begin when
// the holder did is not the holder, and is left alone.
func TestTerminateOther(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	if _, _, err := ledger.Claim(t.Context(), db.Pool, "A", offsets.Identity{}, []offsets.Assigned{{Partition: 0}}); err != nil {
		t.Fatal(err)
	}
	tx := begin(t, db)
	if _, err := ledger.Advance(t.Context(), tx, offsets.Claim{Epoch: 1}, offsets.Position{Next: 1}); err != nil {
		t.Fatal(err)
	}
	holder, found, err := ledger.Holder(t.Context(), db.Pool, 0)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	holder.Started = holder.Started.Add(-time.Second)
	if ended, err := ledger.Terminate(t.Context(), db.Pool, holder); err != nil || ended {
		t.Errorf("ended %t, %v", ended, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Errorf("the transaction did not survive: %v", err)
	}
}
