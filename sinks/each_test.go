package sinks_test

import (
	"context"
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
