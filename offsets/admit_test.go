package offsets_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// purgingTx purges all keys, from another session, between the insert of the keys
// and the look at those that stood in its way.
type purgingTx struct {
	pgx.Tx
	db *tablestest.DB
}

func (tx purgingTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "select key, partition") {
		tx.db.Exec("delete from processed_message")
	}
	return tx.Tx.Query(ctx, sql, args...)
}

// A key that is purged just then is neither fresh nor a duplicate: its insert has
// failed, and what it stood for is unknown. Tried again, it is fresh.
func TestAdmitVanished(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	entries := []offsets.Entry{{Key: keyOf("k0"), Offset: 1}}
	admitOnce(t, db, ledger, entries)
	tx := begin(t, db)
	_, err := ledger.Admit(t.Context(), purgingTx{tx, db}, entries)
	const want = "offsets: admit 1 keys from orders/0@1: a key vanished while it was being admitted: 0 inserted + 0 found; try the transaction again"
	if !errors.Is(err, offsets.ErrKeyVanished) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	rollback(t, tx)
	if got := admitOnce(t, db, ledger, entries); got[0].Outcome != offsets.Fresh {
		t.Errorf("tried again, got %+v", got[0])
	}
}

// Keys under an id that nobody was given would be shared by all who forgot to
// register; and a ledger needs to know whose account it is.
func TestRegister(t *testing.T) {
	db := tablestest.New(t)
	ledger := offsets.New(offsets.Options{Schema: db.Schema, Group: "shop", Topic: "orders"})
	_, err := ledger.Admit(t.Context(), begin(t, db), []offsets.Entry{{Key: keyOf("k0"), Offset: 1}})
	if err == nil || !strings.HasSuffix(err.Error(), "the handler has no id yet; call Register first") {
		t.Errorf("got %v", err)
	}
	for _, o := range []offsets.Options{{Topic: "orders"}, {Group: "shop"}} {
		if err := offsets.New(o).Register(t.Context(), db.Pool); err == nil || !strings.Contains(err.Error(), "are required") {
			t.Errorf("%+v: got %v", o, err)
		}
	}
	for range 3 {
		newLedger(t, db)
	}
	if got := db.Dump("select id, name from handler"); got != "id  name\n1   shop\n" {
		t.Errorf("registered three times, got\n%s", got)
	}
}

// Replay is the caller's word for what it has read again by itself; it is none of
// the causes that the account keeps.
func TestCount(t *testing.T) {
	duplicate := func(c offsets.Cause) offsets.Admission {
		return offsets.Admission{Outcome: offsets.Duplicate, Cause: c}
	}
	got := offsets.Count([]offsets.Admission{
		{Outcome: offsets.Fresh},
		{Outcome: offsets.Conflict},
		duplicate(offsets.Producer),
		duplicate(offsets.Redelivery), duplicate(offsets.Redelivery), duplicate(offsets.Replay),
	})
	if want := (offsets.Counts{Fresh: 1, Producer: 1, Redelivery: 2, Conflicts: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func begin(tb testing.TB, db *tablestest.DB) pgx.Tx {
	tb.Helper()
	tx, err := db.Pool.Begin(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { tx.Rollback(context.WithoutCancel(tb.Context())) }) //nolint:errcheck // it may have ended
	return tx
}

func rollback(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func admitOnce(t *testing.T, db *tablestest.DB, ledger *offsets.Ledger, entries []offsets.Entry) []offsets.Admission {
	t.Helper()
	tx := begin(t, db)
	admissions, err := ledger.Admit(t.Context(), tx, entries)
	if err == nil {
		err = tx.Commit(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return admissions
}
