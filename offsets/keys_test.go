package offsets_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

func parseKey(text string) [16]byte { return uuid.MustParse(text) }

// TestFindKey proves that a key is found with its place, its payload, its time by
// the database's clock and its result, under its own handler only, and not after
// it was purged.
func TestFindKey(t *testing.T) {
	db := tablestest.New(t)
	l := newLedger(t, db)
	entry := offsets.Entry{Key: keyOf("k"), Partition: 2, Offset: 77, PayloadSum: -5}
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		if _, err := l.Admit(t.Context(), tx, []offsets.Entry{entry}); err != nil {
			return err
		}
		return l.Keep(t.Context(), tx, []offsets.Entry{entry}, []json.RawMessage{json.RawMessage(`{"a": 1}`)})
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Exec(`update processed_message set processed_at = '2026-01-31T08:00:00Z'`)
	p, found, err := l.FindKey(t.Context(), db.Pool, entry.Key)
	if err != nil || !found || p.Entry != entry || string(p.Result) != `{"a": 1}` || !p.At.Equal(time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v, %v", p, found, err)
	}
	other := offsets.New(offsets.Options{Schema: db.Schema, Group: "shop", Topic: "orders", Handler: "other"})
	if _, found, err := other.FindKey(t.Context(), db.Pool, entry.Key); found || err != nil {
		t.Errorf("under another handler: %v, %v", found, err)
	}
	if _, err := walk(t.Context(), l, db.Pool, offsets.Purge{Retain: time.Microsecond}); err != nil {
		t.Fatal(err)
	}
	if _, found, err := l.FindKey(t.Context(), db.Pool, entry.Key); found || err != nil {
		t.Errorf("after its purge: %v, %v", found, err)
	}
}

// TestKeyStats proves that a small table is counted, and that a large one is
// estimated within the sample's error by handler, with its sizes.
func TestKeyStats(t *testing.T) {
	db := tablestest.New(t)
	l := newLedger(t, db)
	db.Exec(`insert into handler (name) values ('other'), ('none')`)
	if s, err := l.KeyStats(t.Context(), db.Pool); err != nil || len(s.Handlers) != 0 || !s.Exact || s.TableBytes < 0 || s.IndexBytes <= 0 {
		t.Errorf("of an empty table: %+v, %v", s, err)
	}
	oldKeys(db, "shop", 0, 0, 300, "1 day")
	oldKeys(db, "other", 0, 0, 100, "3 days")
	oldKeys(db, "other", 0, 100, 100, "2 days")
	s, err := l.KeyStats(t.Context(), db.Pool)
	if err != nil || !s.Exact || len(s.Handlers) != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	if got := fmt.Sprint(s.Handlers[0].Handler, s.Handlers[0].Keys, s.Handlers[1].Handler, s.Handlers[1].Keys); got != "other200shop300" {
		t.Errorf("the handlers are %s", got)
	}
	if age := time.Since(s.Handlers[0].Oldest); age < 3*day-time.Hour || age > 3*day+time.Hour {
		t.Errorf("the oldest key is %v old", age)
	}

	oldKeys(db, "shop", 0, 1000, 250_000, "1 day")
	s, err = l.KeyStats(t.Context(), db.Pool)
	if err != nil || s.Exact || s.TableBytes < 10<<20 || s.IndexBytes < 5<<20 {
		t.Fatalf("%+v, %v", s, err)
	}
	h := s.Handlers[len(s.Handlers)-1]
	if h.Handler != "shop" || h.Keys < 200_000 || h.Keys > 300_000 {
		t.Errorf("estimated %+v of 250,300", h)
	}
}
