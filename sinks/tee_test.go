package sinks_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// Proves that Tee goes in order, ends at the first error, and prepares all,
// with all their faults.
func TestTee(t *testing.T) {
	db := tablestest.New(t)
	var seen []string
	note := func(name string, err error) sinks.Sink[schema.Row] {
		return sinks.Batch(func(context.Context, pgx.Tx, []schema.Message[schema.Row]) error {
			seen = append(seen, name)
			return err
		})
	}
	sink := sinks.Tee(note("a", nil), note("b", errDown), note("c", nil))
	if err := apply(t, db, sink, batch(t, kv, `1={"k":1}`)); !errors.Is(err, errDown) {
		t.Errorf("got %v, want %v", err, errDown)
	}
	equal(t, strings.Join(seen, " "), "a b")

	err := prepare(t, db, sinks.Tee[schema.Row](note("a", nil), &sinks.Insert[schema.Row]{Table: "x1"}, &sinks.Insert[schema.Row]{Table: "x2"}))
	if err == nil || !strings.Contains(err.Error(), "no table x1") || !strings.Contains(err.Error(), "no table x2") {
		t.Errorf("got %v, want both tables named", err)
	}
}

// said is a sink that notes what it sees and says what it is told to.
type said struct {
	name string
	seen *[]string
	says []schema.Outcome
}

func (s *said) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[schema.Row]) error {
	_, err := s.ApplyReport(ctx, tx, batch)
	return err
}

func (s *said) ApplyReport(_ context.Context, _ pgx.Tx, batch []schema.Message[schema.Row]) ([]schema.Outcome, error) {
	note := []byte(s.name)
	for _, m := range batch {
		note = append(note, m.Body.Get("k").Raw...)
	}
	*s.seen = append(*s.seen, string(note))
	return s.says, nil
}

// Proves that a duplicate goes no further, that a stale message does, and that
// the outcomes of all sinks are those of the whole batch.
func TestTeeReports(t *testing.T) {
	db := tablestest.New(t)
	var seen []string
	result := []byte(`1`)
	sink := sinks.Tee[schema.Row](
		&said{"a", &seen, nil},
		&said{"b", &seen, []schema.Outcome{{}, {Duplicate: true}, {}, {Stale: true}, {}}},
		&said{"c", &seen, []schema.Outcome{{Result: []byte(`0`)}, {}, {}, {Duplicate: true}}},
		&said{"d", &seen, []schema.Outcome{{Result: result}, {Stale: true}, {}}},
		&said{"e", &seen, []schema.Outcome{{Duplicate: true}, {Duplicate: true}, {Duplicate: true}}},
		&said{"f", &seen, nil},
	)
	messages := batch(t, kv, `x={"k":0}`, `x={"k":1}`, `x={"k":2}`, `x={"k":3}`, `x={"k":4}`)
	var outcomes []schema.Outcome
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) (err error) {
		outcomes, err = sink.ApplyReport(t.Context(), tx, messages)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, strings.Join(seen, " "), "a01234 b01234 c0234 d023 e023")
	for i, want := range []schema.Outcome{{Duplicate: true, Result: result}, {Duplicate: true}, {Duplicate: true, Stale: true}, {Duplicate: true, Stale: true}, {Duplicate: true}} {
		got := outcomes[i]
		if got.Duplicate != want.Duplicate || got.Stale != want.Stale || string(got.Result) != string(want.Result) {
			t.Errorf("message %d: got %+v, want %+v", i, got, want)
		}
	}
}

// Proves that outcomes which do not fit the batch are an error, not a guess.
func TestTeeMiscounted(t *testing.T) {
	db := tablestest.New(t)
	var seen []string
	sink := sinks.Tee[schema.Row](&said{"a", &seen, make([]schema.Outcome, 1)})
	_, err := reported(t, db, sink, batch(t, kv, `x={"k":0}`, `x={"k":1}`))
	wantText(t, err, "has answered 1 outcomes for 2 messages")
}

// Proves that an insert which tells duplicates keeps them from the total behind
// it, and that behind a total it is refused with the remedy, also inside another
// Tee and a Where.
func TestTeeGuard(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table payment (id int primary key, amount numeric);
		create table balance (account text primary key, total numeric, n bigint not null)`)
	fields := schema.NewFields("id", "account", "amount")
	guard := func() sinks.Sink[schema.Row] {
		return &sinks.Insert[schema.Row]{Table: "payment", Fields: fields, KeyFields: []string{"id"}}
	}
	sink := prepared(t, db, sinks.Sink[schema.Row](sinks.Tee[schema.Row](guard(), balances())))
	lines := []string{`1={"id":1,"account":"a","amount":1}`, `2={"id":2,"account":"a","amount":2}`, `1={"id":1,"account":"a","amount":1}`}
	mustReport(t, db, sink, batch(t, fields, lines...), "..d")
	mustReport(t, db, sink, batch(t, fields, lines[0], `3={"id":3,"account":"a","amount":4}`), "d.")
	equal(t, compact(db, `select * from balance`), "a,7,3")

	pass := sinks.Predicate[schema.Row]{Text: "true", Match: func(*schema.Message[schema.Row]) (bool, error) { return true, nil }}
	for _, late := range []sinks.Sink[schema.Row]{guard(), sinks.Tee(guard()), sinks.Where(guard(), pass)} {
		err := prepare(t, db, sinks.Sink[schema.Row](sinks.Tee[schema.Row](balances(), late)))
		wantText(t, err, "sinks: insert payment tells duplicates", "sink 1 of the tee (accumulate) has added", "put the insert before it")
	}
}

// Proves that lint is told the truth of each sink, and the worst of a Tee.
func TestKinds(t *testing.T) {
	upsert, sum := &sinks.Upsert[schema.Row]{}, &sinks.Sum[schema.Row]{}
	each := sinks.Each(func(context.Context, pgx.Tx, schema.Message[schema.Row]) error { return errDown })
	for _, c := range []struct {
		sink any
		want sinks.Kind
	}{
		{upsert, sinks.SetState},
		{&sinks.Delete[schema.Row]{}, sinks.SetState},
		{&sinks.Insert[schema.Row]{}, sinks.Accumulate},
		{&sinks.Insert[schema.Row]{OnConflict: sinks.ConflictDuplicate}, sinks.InsertOnce},
		{sum, sinks.Accumulate},
		{&sinks.Ledger[schema.Row]{}, sinks.Accumulate},
		{each, sinks.Opaque},
		{sinks.Batch(each.Apply), sinks.Opaque},
		{sinks.Tee[schema.Row](upsert, upsert), sinks.SetState},
		{sinks.Tee[schema.Row](upsert, sum, upsert), sinks.Accumulate},
		{sinks.Tee[schema.Row](sum, each, upsert), sinks.Opaque},
		{nil, sinks.Opaque},
	} {
		if got := sinks.KindOf(c.sink); got != c.want {
			t.Errorf("%T: got %s, want %s", c.sink, got, c.want)
		}
	}
	if parts := sinks.Tee[schema.Row](upsert, sum).Parts(); len(parts) != 2 || parts[1] != sinks.Sink[schema.Row](sum) {
		t.Errorf("got parts %v", parts)
	}
}
