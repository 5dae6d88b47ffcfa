package sinks_test

import (
	"strings"
	"testing"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// each applies the lines one by one and returns what became of each: "ok", or
// the fault.
func each(t *testing.T, db *tablestest.DB, sink sinks.Sink[schema.Row], fields *schema.Fields, lines ...string) string {
	t.Helper()
	prepared(t, db, sink)
	var out []string
	for _, line := range lines {
		err := apply(t, db, sink, batch(t, fields, line))
		if err == nil {
			out = append(out, "ok")
			continue
		}
		out = append(out, strings.TrimPrefix(faultOf(t, err), "0 "))
	}
	return strings.Join(out, "; ")
}

// Proves case C04: a character U+0000 is a fault with its SQLSTATE and field,
// in a field as in the record key, and is left out where that is declared.
func TestCaseC04(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table c04 (id int primary key, k text, name text)`)
	fields := schema.NewFields("id", "name")
	lines := []string{`1={"id":1,"name":"ok"}`, `2={"id":2,"name":"a\u0000b"}`, `3={"id":3,"name":"ok"}`, "4\x00x={\"id\":4,\"name\":\"ok\"}"}
	columns := []sinks.Column[schema.Row]{sinks.Field("id", "id"), sinks.Field("k", "$key"), sinks.Field("name", "name")}
	sink := &sinks.Insert[schema.Row]{Table: "c04", Columns: columns}
	equal(t, each(t, db, sink, fields, lines...), "ok; value_range name name; ok; value_range $key k")
	if err := apply(t, db, sinks.Sink[schema.Row](sink), batch(t, fields, lines[1])); !strings.Contains(err.Error(), "22021") {
		t.Errorf("got %v", err)
	}
	db.Exec(`truncate c04`)
	for i := range columns[1:] {
		var err error
		if columns[i+1], err = columns[i+1].As("strip_nul"); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, each(t, db, &sinks.Insert[schema.Row]{Table: "c04", Columns: columns}, fields, lines...), "ok; ok; ok; ok")
	equal(t, compact(db, `select * from c04 order by id`), "1,1,ok 2,2,ab 3,3,ok 4,4x,ok")
}

// Proves case C11: a negative scale stores what PostgreSQL stores where that is
// the amount, and refuses where PostgreSQL would round it.
func TestCaseC11(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table c11 (id int primary key, n numeric(5,-2))`)
	fields := schema.NewFields("id", "n")
	equal(t, each(t, db, &sinks.Insert[schema.Row]{Table: "c11", Fields: fields}, fields,
		`1={"id":1,"n":"12345"}`, `2={"id":2,"n":"149"}`, `3={"id":3,"n":"150"}`, `4={"id":4,"n":1.23E+4}`, `5={"id":5,"n":"12349"}`, `6={"id":6,"n":"12300.0"}`),
		"value_range n n; value_range n n; value_range n n; ok; value_range n n; ok")
	equal(t, compact(db, `select * from c11 order by id`), "4,12300 6,12300")
}

// Proves case C12: a decimal that brings its own scale, a number and a text of
// one field arrive alike, with every digit.
func TestCaseC12(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table c12 (id int primary key, amount numeric)`)
	fields := schema.NewFields("id", "amount")
	amount, err := sinks.Field("amount", "amount").As("decimal")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, each(t, db, &sinks.Insert[schema.Row]{Table: "c12", Columns: []sinks.Column[schema.Row]{sinks.Field("id", "id"), amount}}, fields,
		`1={"id":1,"amount":{"scale":18,"value":"PN5v/5cy1UXVj9kw804="}}`, `2={"id":2,"amount":1234567890123456.123456789012345678}`, `3={"id":3,"amount":"1234567890123456.123456789012345678"}`),
		"ok; ok; ok")
	equal(t, compact(db, `select distinct amount from c12`), "1234567890123456.123456789012345678")
}

// Proves case C19: names are quoted and taken as they are, in columns that are
// found by name too.
func TestCaseC19(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table "Order" (id int primary key, "randomText" text, "select" int, "user" text, "a b" boolean, "x""y" text)`)
	fields := schema.NewFields("id", "randomText", "select", "user", "a b", `x"y`)
	equal(t, each(t, db, &sinks.Upsert[schema.Row]{Table: "Order", Key: []string{"id"}, Fields: fields}, fields,
		`1={"id":1,"randomText":"c","select":69,"user":"u1","a b":true,"x\"y":"q"}`), "ok")
	equal(t, compact(db, `select * from "Order"`), "1,c,69,u1,t,q")
}

// Proves case C23: times are exact to the microsecond, nine digits are refused,
// and are cut where that is declared.
func TestCaseC23(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table c23 (id int primary key, at timestamptz)`)
	fields := schema.NewFields("id", "at")
	nine := `2={"id":2,"at":"2025-03-05T04:33:45.844195123Z"}`
	equal(t, each(t, db, &sinks.Insert[schema.Row]{Table: "c23", Fields: fields}, fields,
		`0={"id":0,"at":"2025-03-05T04:33:45.844195Z"}`, `1={"id":1,"at":"2025-03-05T04:33:45.8Z"}`, nine, `3={"id":3,"at":"2025-03-05T04:33:45Z"}`,
		`4={"id":4,"at":"2025-03-05T04:33:60Z"}`, `5={"id":5,"at":"2025-03-05 04:33:45.844195+00"}`),
		"ok; ok; value_range at at; ok; value_range at at; ok")
	at, err := sinks.Field("at", "at").As("truncate")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, each(t, db, &sinks.Insert[schema.Row]{Table: "c23", Columns: []sinks.Column[schema.Row]{sinks.Field("id", "id"), at}}, fields, nine), "ok")
	equal(t, compact(db, `select extract(epoch from at) from c23 order by id`), "1741149225.844195 1741149225.800000 1741149225.844195 1741149225.000000 1741149225.844195")
}

// Proves case C37: a row of arrays is stored exactly, and one that cannot be
// names its column.
func TestCaseC37(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table arr (id int primary key, f float8[], t text[], j jsonb)`)
	fields := schema.NewFields("id", "f", "t", "j")
	equal(t, each(t, db, &sinks.Insert[schema.Row]{Table: "arr", Fields: fields}, fields,
		`1={"id":1,"f":[30.7,31,5],"t":["x"],"j":[1]}`, `2={"id":2,"f":[],"t":[],"j":[]}`, `3={"id":3,"f":[1],"t":[null,"a"],"j":[null]}`,
		`4={"id":4,"f":[[1,2],[3,4]],"t":["a,b","\"q\"","{}","NULL"],"j":[[1],[2]]}`, `5={"id":5,"f":[[1,2],[3]],"t":"x","j":1}`, `5={"id":5,"f":[1],"t":"x","j":1}`),
		"ok; ok; ok; ok; value_range f f; value_type t t")
	equal(t, db.Dump(`select * from arr order by id`), `id  f              t                            j
1   {30.7,31,5}    {x}                          [1]
2   {}             {}                           []
3   {1}            {NULL,a}                     [null]
4   {{1,2},{3,4}}  {"a,b","\"q\"","{}","NULL"}  [[1], [2]]
`)
}

// Proves case C40: bytes that are no UTF-8 are a fault and never U+FFFD in the
// table, also where they come as bytes into a text column.
func TestCaseC40(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table c40 (name text)`)
	sink := prepared(t, db, sinks.Sink[[]byte](&sinks.Insert[[]byte]{Table: "c40", Columns: []sinks.Column[[]byte]{
		sinks.Col("name", func(m schema.Message[[]byte]) any { return m.Body }),
	}}))
	for _, b := range []string{"Ren\xe9", "\xc3\x28", "\xf0\x9f\x98", "\xff\xfe"} {
		r := &schema.Record{Topic: "t", Value: []byte(b)}
		equal(t, faultOf(t, apply(t, db, sink, []schema.Message[[]byte]{{Record: r, Body: r.Value}})), "0 value_type name name")
		if _, err := schema.Rows(schema.NewFields("name"))(t.Context(), &schema.Record{Value: []byte(`{"name":"` + b + `"}`)}); err == nil {
			t.Errorf("%q was decoded", b)
		}
	}
	mustApply(t, db, sink, []schema.Message[[]byte]{{Record: &schema.Record{Value: []byte{}}, Body: []byte("Renée")}})
	equal(t, compact(db, `select * from c40`), "Renée")
}

// Proves case C09: the bytes of a decimal whose scale the schema has, as bytes
// and as base64; no bytes are no number. How Avro frames them is the decoder's.
func TestCaseC09(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table c09 (amt numeric(15,5))`)
	amt, err := sinks.Col("amt", func(m schema.Message[[]byte]) any { return m.Body }).As("decimal:5")
	if err != nil {
		t.Fatal(err)
	}
	sink := prepared(t, db, sinks.Sink[[]byte](&sinks.Insert[[]byte]{Table: "c09", Columns: []sinks.Column[[]byte]{amt}}))
	for _, b := range []string{"\x3c", "\x5b\x8d\x80", "\xc4", "\x03\x8d\x7e\xa4\xc6\x7f\xff"} {
		mustApply(t, db, sink, []schema.Message[[]byte]{{Record: &schema.Record{Value: []byte{}}, Body: []byte(b)}})
	}
	equal(t, compact(db, `select amt from c09`), "0.00060 60.00000 -0.00060 9999999999.99999")
	r := &schema.Record{Topic: "t", Value: []byte{}}
	equal(t, faultOf(t, apply(t, db, sink, []schema.Message[[]byte]{{Record: r, Body: []byte{}}})), "0 value_type amt amt")
}
