package sinks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// Proves that messages and tombstones delete all rows of their key, also by a
// generated column, and that no such row is no error.
func TestDelete(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int, place text, label text generated always as (place || '!') stored, unique (id, place));
		insert into d values (1, 'a'), (1, 'b'), (2, 'a'), (3, 'a'), (4, 'c')`)
	fields := schema.NewFields("id", "place")
	byID := prepared(t, db, sinks.Sink[schema.Row](&sinks.Delete[schema.Row]{Table: "d", Key: []sinks.Column[schema.Row]{sinks.Field("id", "id")}}))
	mustApply(t, db, byID, batch(t, fields, `x={"id":1}`, `x={"id":1}`, `x={"id":9}`, `2=`))
	equal(t, compact(db, `select id, place from d order by 1`), "3,a 4,c")
	byLabel := prepared(t, db, sinks.Sink[schema.Row](&sinks.Delete[schema.Row]{Table: "d", Key: []sinks.Column[schema.Row]{
		sinks.Field("label", "place"), sinks.Field("id", "id"),
	}}))
	mustApply(t, db, byLabel, batch(t, fields, `x={"id":4,"place":"a!"}`, `x={"id":3,"place":"a!"}`))
	equal(t, compact(db, `select id, place from d order by 1`), "4,c")
}

// Proves that a message without a key is at fault, all of a batch at once.
func TestDeleteFaults(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int primary key); insert into d values (1)`)
	fields := schema.NewFields("id")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Delete[schema.Row]{Table: "d", Key: []sinks.Column[schema.Row]{sinks.Field("id", "id")}}))
	messages := batch(t, fields, `1={"id":1}`, `1={}`, `1={"id":null}`, `1={"id":"x"}`, `x=`, `1=`)
	messages[5].Key = nil
	equal(t, faultsOf(t, apply(t, db, sink, messages)),
		"1 not_null id id\n2 not_null id id\n3 value_type id id\n4 value_type id id\n5 tombstone id id\n")
	equal(t, db.Value(`select count(*) from d`), "1")
	err := prepare(t, db, sinks.Sink[schema.Row](&sinks.Delete[schema.Row]{Table: "d"}))
	equal(t, fmt.Sprint(err), "sinks: delete d: no Key: it says which rows a message means")
	err = prepare(t, db, sinks.Sink[schema.Row](&sinks.Delete[schema.Row]{Table: "d", Key: []sinks.Column[schema.Row]{sinks.Field("idd", "id")}}))
	if err == nil || !strings.Contains(err.Error(), `nearest is "id"`) {
		t.Errorf("got %v", err)
	}
}
