package sinks_test

import (
	"fmt"
	"time"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/sinks"
)

// A column of an expression. Its fields are found before there is a decoder.
func ExampleComputed() {
	const total = `round(net * (1 + rate), 2)`
	paths, err := sinks.ExpressionPaths(total)
	fmt.Println(paths, err)
	fields := schema.NewFields(append(paths, "id")...)
	column, err := sinks.Computed("total", total, fields)
	if err != nil {
		fmt.Println(err)
		return
	}
	sink := &sinks.Insert[schema.Row]{Table: "invoice", Columns: []sinks.Column[schema.Row]{sinks.Field("id", "id"), column}}

	run(`create table invoice (id int, total numeric(12,2))`, sink, fields, `select * from invoice`,
		`1={"id":1,"net":100.05,"rate":0.19}`)
	_, err = sinks.Computed("total", "nett + 1", fields)
	fmt.Println(err)
	// Output:
	// [net rate] <nil>
	// [1 119.06]
	// column "total": expression "nett + 1": at 1:1: no field "nett"; nearest is "net"
}

// Large payments only. The others are done, and have no effect.
func ExampleWhere() {
	fields := schema.NewFields("id", "amount")
	large, err := sinks.Condition(`amount >= 1000 and $topic == "t"`, fields)
	if err != nil {
		fmt.Println(err)
		return
	}
	sink := sinks.Where(sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "large", Fields: fields}), large)

	run(`create table large (id int, amount numeric)`, sink, fields, `select * from large`,
		`1={"id":1,"amount":999.99}`, `2={"id":2,"amount":1000.00}`)
	// Output:
	// [2 1000.00]
}

// A number that is a time, by declaration.
func ExampleColumn_As() {
	fields := schema.NewFields("ts")
	at, err := sinks.Field("at", "ts").As("epoch_millis")
	if err != nil {
		fmt.Println(err)
		return
	}
	sink := &sinks.Insert[schema.Row]{Table: "event", Columns: []sinks.Column[schema.Row]{at}}

	run(`create table event (at timestamptz)`, sink, fields, `select * from event`, `1={"ts":1741149225844}`)
	// Output:
	// [2025-03-05 04:33:45.844+00]
}

// A sink that goes on when its table gets a column that it has a field for.
func ExampleRefresh() {
	fields := schema.NewFields("id", "flag")
	insert := &sinks.Insert[schema.Row]{Table: "people", Fields: fields}

	run(`create table people (id int, flag boolean)`, sinks.Refresh[schema.Row](insert, 10*time.Second), fields,
		`select * from people`, `1={"id":1,"flag":true}`)
	// Output:
	// [1 t]
}
