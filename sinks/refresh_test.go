package sinks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
	"github.com/oncestream/oncestream/sinks/sinkstest"
)

func people(every time.Duration) sinks.Sink[schema.Row] {
	return sinks.Refresh(sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "people", Fields: peopleFields}), every)
}

var peopleFields = schema.NewFields("id", "name", "flag")

// Proves case C33: a field without a column is ignored; a column that is added
// is written without a restart; one that is dropped is a clear error that blames
// no message, until it is back or the column is no longer asked for.
func TestRefreshC33(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table people (id int primary key, name text)`)
	sink := prepared(t, db, people(time.Nanosecond))
	lines := []string{`1={"id":1,"name":"a"}`, `2={"id":2,"name":"b","flag":true}`, `3={"id":3,"name":"c","flag":false}`}
	mustApply(t, db, sink, batch(t, peopleFields, lines[:2]...))
	db.Exec(`alter table people add column flag boolean`)
	mustApply(t, db, sink, batch(t, peopleFields, lines[2]))
	equal(t, compact(db, `select * from people order by id`), "1,a,null 2,b,null 3,c,f")
	db.Exec(`alter table people drop column flag`)
	mustApply(t, db, sink, batch(t, peopleFields, `4={"id":4,"flag":true}`))
	equal(t, compact(db, `select id, name from people order by id`), "1,a 2,b 3,c 4,null")
}

// Proves that a change which the sink meets is found by its SQLSTATE, is tried
// again after another look, and is no fault of a message.
func TestRefreshMeetsChange(t *testing.T) {
	for name, c := range map[string]struct{ change, then, back string }{
		"column dropped": {`alter table people drop column flag`, `no column "flag" in table people`, `alter table people add column flag boolean`},
		"table dropped":  {`alter table people rename to persons`, `no table people`, `alter table persons rename to people`},
		"type changed":   {`alter table people alter column flag type jsonb using to_jsonb(flag)`, ``, ``},
		"generated":      {`alter table people drop column flag; alter table people add column flag boolean generated always as (true) stored`, `generated always`, `alter table people alter column flag drop expression`},
	} {
		t.Run(name, func(t *testing.T) {
			db := tablestest.New(t)
			db.Exec(`create table people (id int primary key, name text, flag boolean)`)
			sink := prepared(t, db, sinks.Sink[schema.Row](sinks.Refresh(sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{
				Table: "people", Columns: []sinks.Column[schema.Row]{sinks.Field("id", "id"), sinks.Field("flag", "flag")},
			}), 0)))
			one, two := batch(t, peopleFields, `1={"id":1,"flag":true}`), batch(t, peopleFields, `2={"id":2,"flag":true}`)
			mustApply(t, db, sink, one)
			db.Exec(c.change)
			err := apply(t, db, sink, two)
			if _, blamed := asFault(err); blamed || !errors.Is(err, sinks.ErrTargetChanged) {
				t.Fatalf("got %v", err)
			}
			for range 2 {
				if err = apply(t, db, sink, two); c.then != "" && (err == nil || !strings.Contains(err.Error(), c.then)) {
					t.Fatalf("got %v, want %s", err, c.then)
				}
				if c.then == "" {
					break
				}
			}
			if c.back != "" {
				db.Exec(c.back)
				mustApply(t, db, sink, two)
			}
			equal(t, compact(db, `select id, flag::boolean from people where id = 2`), "2,t")
		})
	}
}

// Proves that without a change nothing is asked of the catalog, that a refresh
// at no interval sees no new column, and that what a sink reports comes through.
func TestRefreshOff(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table people (id int primary key, name text)`)
	sink := prepared(t, db, people(0))
	db.Exec(`alter table people add column flag boolean`)
	mustApply(t, db, sink, batch(t, peopleFields, `1={"id":1,"flag":true}`))
	equal(t, compact(db, `select * from people`), "1,null,null")
	out, err := sinks.Refresh[schema.Row](numbering{}, time.Hour).ApplyReport(t.Context(), nil, batch(t, peopleFields, `1={"id":1}`))
	if err != nil || len(out) != 1 || string(out[0].Result) != "0" {
		t.Errorf("got %v, %v", out, err)
	}
	if k := sinks.Refresh(sinks.Sink[schema.Row](sumPayments()), 0).Kind(); k != sinks.Accumulate {
		t.Error(k)
	}
	equal(t, fmt.Sprint(sinks.Refresh[schema.Row](numbering{}, 0).Prepare(t.Context(), nil)), "<nil>")
}

// Proves that a sink within a Refresh and a Where keeps to what a sink promises.
func TestRefreshConformance(t *testing.T) {
	all := sinks.Predicate[entry]{Match: func(*schema.Message[entry]) (bool, error) { return true, nil }}
	s := suite(func() sinks.Sink[entry] {
		return sinks.Refresh(sinks.Sink[entry](sinks.Where(upsertEntry(), all)), time.Hour)
	})
	s.Idempotent = true
	sinkstest.Run(t, s)
}
