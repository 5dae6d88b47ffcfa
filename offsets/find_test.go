package offsets_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// TestFindPlan proves that a session which has met a small table does not go on to
// read all of it: small batches have made their plan when a vacuum tells that the
// table has one page, and then large ones come.
func TestFindPlan(t *testing.T) {
	db := tablestest.New(t)
	db.Exec("alter table processed_message set (autovacuum_enabled = off)")
	l := newLedger(t, db)
	conn := connections(t, db, 1)[0]
	claims, _, err := l.Claim(t.Context(), conn, "A", offsets.Identity{}, []offsets.Assigned{{}})
	if err != nil {
		t.Fatal(err)
	}
	c := claims[0]
	const scanned = "select seq_scan from pg_stat_xact_user_tables where relid = 'processed_message'::regclass"
	pass := func(size int) (scans int) {
		batch := newBenchBatch(size, 5, 0, false)
		for i := range batch.entries {
			batch.entries[i].Offset = c.Next + int64(i)
			batch.entries[i].Key = keyOf(fmt.Sprint("k", c.Next+int64(i)))
		}
		err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) (err error) {
			var before int // what the transactions before have not yet reported
			if err := tx.QueryRow(t.Context(), scanned).Scan(&before); err != nil {
				return err
			}
			if c, _, err = l.AdvanceAndAdmit(t.Context(), tx, c, offsets.Position{Next: c.Next + int64(size)}, batch.entries); err != nil {
				return err
			}
			err = tx.QueryRow(t.Context(), scanned).Scan(&scans)
			scans -= before
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return scans
	}
	for range 8 {
		pass(10)
	}
	db.Exec("vacuum analyze processed_message")
	if pass(10) != 1 {
		t.Error("a table of one page is not read as a whole: the test proves nothing")
	}
	for range 12 {
		pass(1000)
	}
	if scans := pass(1000); scans != 0 {
		t.Errorf("a table of 12,000 keys was read as a whole %d times", scans)
	}
}
