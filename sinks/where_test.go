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

func condition(t *testing.T, expression string, fields *schema.Fields) sinks.Predicate[schema.Row] {
	t.Helper()
	p, err := sinks.Condition(expression, fields)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Proves that each sink of a Tee sees the messages that match its own predicate,
// that a batch of which none matches makes no statement, and that tombstones
// pass where the predicate says so.
func TestWhere(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table big (id int, v numeric); create table kept (id int primary key, v numeric)`)
	fields := schema.NewFields("id", "v")
	sink := prepared(t, db, sinks.Sink[schema.Row](sinks.Tee(
		sinks.Sink[schema.Row](sinks.Where(sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "big", Fields: fields}), condition(t, "(v ?? 0) > 10.0", fields))),
		sinks.Sink[schema.Row](sinks.Where(sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{Table: "kept", Key: []string{"id"}, Fields: fields}), condition(t, "$tombstone or v < 100", fields))),
	)))
	mustApply(t, db, sink, batch(t, fields, `1={"id":1,"v":10}`, `2={"id":2,"v":10.01}`, `3={"id":3,"v":1000}`, `4={"id":4,"v":4}`, `4=`))
	equal(t, compact(db, `select * from big order by id`), "2,10.01 3,1000")
	equal(t, compact(db, `select * from kept order by id`), "1,10 2,10.01")
	if err := sink.Apply(t.Context(), nil, batch(t, fields, `1={"id":1,"v":null}`)[:0]); err != nil {
		t.Errorf("no message: %v", err)
	}
}

// Proves that all messages for which the predicate fails are named at once, and
// that a predicate that is neither true nor false is refused.
func TestWhereFaults(t *testing.T) {
	fields := schema.NewFields("v", "ok")
	sink := sinks.Where(sinks.Batch(func(context.Context, pgx.Tx, []schema.Message[schema.Row]) error {
		t.Error("the sink was called")
		return nil
	}), condition(t, "v > 1", fields))
	err := sink.Apply(t.Context(), nil, batch(t, fields, `1={"v":null}`, `2={"v":2}`, `3={"v":"x"}`))
	faults, ok := errors.AsType[schema.Faults](err)
	if !ok || len(faults) != 2 {
		t.Fatalf("got %v", err)
	}
	equal(t, faultOf(t, faults[0])+"; "+faultOf(t, faults[1]), "0 value_type v > 1 ; 2 value_type v > 1 ")
	sink = sinks.Where(sinks.Batch(func(context.Context, pgx.Tx, []schema.Message[schema.Row]) error { return nil }), condition(t, "ok", fields))
	equal(t, faultOf(t, sink.Apply(t.Context(), nil, batch(t, fields, `1={"ok":null}`))), "0 value_type ok ")
	for expression, want := range map[string]string{
		"v - 1": `where: expression "v - 1": true or false is needed, this is a number`,
		"w > 1": `where: expression "w > 1": at 1:1: no field "w"`,
	} {
		_, err := sinks.Condition(expression, fields)
		equal(t, fmt.Sprint(err), want)
	}
}

// numbering reports for each message the number it came as.
type numbering struct{}

func (numbering) Apply(context.Context, pgx.Tx, []schema.Message[schema.Row]) error { return nil }

func (numbering) ApplyReport(_ context.Context, _ pgx.Tx, batch []schema.Message[schema.Row]) ([]schema.Outcome, error) {
	out := make([]schema.Outcome, len(batch))
	for i := range batch {
		out[i] = schema.Outcome{Result: fmt.Append(nil, batch[i].Offset), Duplicate: i == 1}
	}
	return out, nil
}

// Proves that the outcomes of the sink come back at the places of their messages.
func TestWhereOutcomes(t *testing.T) {
	fields := schema.NewFields("v")
	sink := sinks.Where[schema.Row](numbering{}, condition(t, "v % 2 == 1", fields))
	got, err := sink.ApplyReport(t.Context(), nil, batch(t, fields, `k={"v":2}`, `k={"v":1}`, `k={"v":4}`, `k={"v":3}`))
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, o := range got {
		text = append(text, fmt.Sprintf("%s%v", o.Result, o.Duplicate))
	}
	equal(t, strings.Join(text, " "), "false 1false false 3true")
}
