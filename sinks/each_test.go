package sinks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

var errDown = errors.New("down")

type refusal struct{ permanent bool }

func (refusal) Error() string     { return "refused" }
func (r refusal) Permanent() bool { return r.permanent }

// Proves how an error of a user's function reaches the engine: a permanent one
// and a panic are the message's own fault, any other is to be tried again.
func TestEachErrors(t *testing.T) {
	db := tablestest.New(t)
	messages := batch(t, kv, `1={"k":1}`, `2={"k":2}`)
	each := func(f func() error) error {
		return apply(t, db, sinks.Each(func(_ context.Context, _ pgx.Tx, m schema.Message[schema.Row]) error {
			if m.Offset == 0 {
				return nil
			}
			return f()
		}), messages)
	}

	err := each(func() error { return fmt.Errorf("call: %w", refusal{permanent: true}) })
	equal(t, faultOf(t, err), "1 handler  ")

	err = each(func() error { return &schema.Fault{Reason: schema.ReasonCheck, Field: "k"} })
	equal(t, faultOf(t, err), "1 check k ")

	err = each(func() error { panic("boom") })
	equal(t, faultOf(t, err), "1 handler  ")
	if !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), "each_test.go") {
		t.Errorf("the panic and its stack are not told: %v", err)
	}

	for _, temporary := range []error{errDown, refusal{permanent: false}} {
		err = each(func() error { return temporary })
		if _, ok := asFault(err); ok || !errors.Is(err, temporary) {
			t.Errorf("got %v, want %v as no fault", err, temporary)
		}
		equal(t, err.Error(), "sinks: t/0@1: "+temporary.Error())
	}
}

// Proves that with savepoints the faults of all messages are found in one run,
// with what PostgreSQL refuses of a call, and that a call at fault leaves nothing
// for those behind it; any other error still ends the batch.
func TestEachSavepoints(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table s (k int primary key, v int not null check (v < 10))`)
	sink := sinks.Each(func(ctx context.Context, tx pgx.Tx, m schema.Message[schema.Row]) error {
		k, v := string(m.Body.Get("k").Raw), string(m.Body.Get("v").Raw)
		if _, err := tx.Exec(ctx, `insert into s values ($1::text::int, nullif($2::text, '')::int)`, k, v); err != nil {
			return err
		}
		switch v {
		case "7":
			panic("seven")
		case "8":
			return refusal{permanent: true}
		case "9":
			return errDown
		}
		return nil
	}).Savepoints()
	messages := batch(t, kv, `1={"k":1,"v":1}`, `1={"k":1,"v":2}`, `2={"k":2,"v":7}`, `2={"k":2,"v":8}`, `2={"k":2,"v":10}`,
		`2={"k":2,"v":null}`, `2={"k":2,"v":"x"}`, `2={"k":2,"v":1}`)
	equal(t, faultsOf(t, apply(t, db, sink, messages)),
		"1 unique  \n2 handler  \n3 handler  \n4 check  \n5 not_null  v\n6 value_range  \n")
	equal(t, db.Value(`select count(*) from s`), "0")
	mustApply(t, db, sink, []schema.Message[schema.Row]{messages[0], messages[7]})
	equal(t, compact(db, `select * from s order by k`), "1,1 2,1")

	err := apply(t, db, sink, batch(t, kv, `3={"k":3,"v":7}`, `3={"k":3,"v":9}`))
	if _, ok := asFault(err); ok || !errors.Is(err, errDown) {
		t.Errorf("got %v, want %v as no fault", err, errDown)
	}
}

// Proves that what a function answers is reported as JSON, and that an answer
// which has no JSON is the message's own fault.
func TestEachResult(t *testing.T) {
	db := tablestest.New(t)
	sink := sinks.EachResult(func(_ context.Context, _ pgx.Tx, m schema.Message[schema.Row]) (any, error) {
		switch string(m.Body.Get("k").Raw) {
		case "1":
			return map[string]any{"id": 7}, nil
		case "2":
			return nil, nil
		case "3":
			return json.RawMessage(`{"raw": true}`), nil
		}
		return make(chan int), nil
	})
	mustReport(t, db, sink, batch(t, kv, `x={"k":2}`), "")
	mustReport(t, db, sink, batch(t, kv, `x={"k":1}`, `x={"k":2}`, `x={"k":3}`), `{"id":7}.{"raw":true}`)
	equal(t, faultOf(t, apply(t, db, sinks.Sink[schema.Row](sink), batch(t, kv, `x={"k":2}`, `x={"k":4}`))), "1 handler  ")
}
