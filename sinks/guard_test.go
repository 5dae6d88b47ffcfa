package sinks_test

import (
	"fmt"
	"testing"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// Proves which sinks can be the only guard of a pipeline: an insert that is set
// to tell duplicates, alone, first in a tee or refreshed; none that would let
// messages pass, or that a dropped index would turn into one that only appends.
func TestGuarding(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int primary key)`)
	fields := schema.NewFields("id")
	insert := func(rule sinks.ConflictRule) *sinks.Insert[schema.Row] {
		return &sinks.Insert[schema.Row]{Table: "d", Fields: fields, KeyFields: []string{"id"}, OnConflict: rule}
	}
	explicit, byDefault, early := insert(sinks.ConflictDuplicate), insert(""), insert(sinks.ConflictDuplicate)
	for _, s := range []*sinks.Insert[schema.Row]{explicit, byDefault} {
		prepared(t, db, sinks.Sink[schema.Row](s))
	}
	condition, err := sinks.Condition("id > 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	set := "sinks: insert d: set on_conflict to duplicate, for which the table needs a unique index on exactly the columns of the key"
	for name, c := range map[string]struct {
		sink sinks.Sink[schema.Row]
		want string
	}{
		"alone":        {explicit, "<nil>"},
		"first":        {sinks.Tee[schema.Row](sinks.Refresh[schema.Row](explicit, 0), byDefault), "<nil>"},
		"second":       {sinks.Tee[schema.Row](byDefault, explicit), set},
		"by default":   {byDefault, set},
		"filtered":     {sinks.Tee(sinks.Where[schema.Row](explicit, condition)), "sinks: the first sink must be an insert of every message, whose unique index tells duplicates; it is insert-once"},
		"nothing":      {sinks.Tee[schema.Row](), "sinks: a tee without sinks tells no duplicates"},
		"not prepared": {early, "sinks: insert d: it was not prepared: call Prepare once before the first batch"},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, fmt.Sprint(c.sink.(interface{ Guarding() error }).Guarding()), c.want)
		})
	}
}
