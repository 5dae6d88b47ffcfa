package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
)

// Proves that values arrive exactly as sent, for every type of the README's
// table: random rows go as JSON through Kafka and the whole program, and what is
// read back from PostgreSQL is what the generator had in mind, be it a value, a
// null or a missing field. The program's session has a time zone and styles of
// its own, which must not matter.
func TestValuesArriveAsSent(t *testing.T) {
	columns := valueColumns()
	w := newValueWorld(t, columns)
	r := w.background()
	row := valueRow(columns)
	sent := 0
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(row, 1, 10).Draw(rt, "rows")
		var records []schema.Record
		for i, row := range rows {
			records = append(records, schema.Record{Value: valueDocument(sent+i, row)})
		}
		first := sent
		sent += len(rows)
		w.send(map[int32][]schema.Record{0: records})
		w.waitFor(`select next_offset from consumer_offset`, strconv.Itoa(sent))
		w.arrived(rt, columns, first, rows)
	})
	r.finish()
	// Fields of these names were sent, too.
	w.value(`select count(*) filter (where made = id * 2) || ' of ' || count(distinct nr) from plain`, fmt.Sprintf("%d of %d", sent, sent))
	t.Logf("%d rows of %d columns", sent, len(columns))
}

// A cell is a field's value as JSON, nothing if it is missing, and the text that
// the column must have then; see valueColumn.reading.
type cell struct{ sent, want string }

// null is the text of a null, which no other value has.
const null = "null"

func textOf(s string) string { return "=" + s }

// valueRow draws a cell for each column.
func valueRow(columns []valueColumn) *rapid.Generator[[]cell] {
	return rapid.Custom(func(rt *rapid.T) []cell {
		row := make([]cell, len(columns))
		for i, c := range columns {
			switch rapid.SampledFrom([]string{"missing", "null", "value", "value", "value", "value"}).Draw(rt, c.name) {
			case "missing":
				row[i] = cell{"", c.fallback()}
			case "null":
				row[i] = cell{"null", null}
			case "value":
				drawn := c.draw.Draw(rt, c.name)
				row[i] = cell{drawn.sent, textOf(drawn.want)}
			}
		}
		return row
	})
}

func valueDocument(id int, row []cell) []byte {
	b := fmt.Appendf(nil, `{"id":%d,"made":1,"nr":1`, id)
	for i, c := range row {
		if c.sent != "" {
			b = fmt.Appendf(b, `,"c%d":%s`, i, c.sent)
		}
	}
	return append(b, '}')
}

// newValueWorld makes the tables: plain has the columns that take a field as it
// is, and finds them by their names; converted has those with a conversion.
func newValueWorld(tb testing.TB, columns []valueColumn) *caseWorld {
	tb.Helper()
	var plain, converted, sources strings.Builder
	for i, c := range columns {
		if c.as == "" {
			fmt.Fprintf(&plain, ", c%d %s", i, c.typ)
			continue
		}
		fmt.Fprintf(&converted, ", c%d %s", i, c.typ)
		fmt.Fprintf(&sources, ", c%d: {field: c%d, as: %q}", i, i, c.as)
	}
	dir := tb.TempDir()
	write := func(name, text string) { noErr(tb, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	write("table.sql", `create type mood as enum ('sad', 'ok', 'so, so'); create domain price as numeric(10,2) check (value > 0);
		create table plain (id bigint primary key`+plain.String()+`, made bigint generated always as (id * 2) stored, nr bigint generated always as identity);
		create table converted (id bigint primary key`+converted.String()+`)`)
	write("pipeline.yaml", `
name: case
kafka: {brokers: [127.0.0.1:1], topic: t, start: earliest}
postgres: {url: "${DATABASE_URL}"}
batch: {max_wait: 1ms}
key: {field: id}
sinks:
  - insert: {table: plain}
  - insert: {table: converted, columns: {id: id`+sources.String()+`}}
`)
	w := newCaseWorld(tb, dir)
	const utc, other = "timezone%3DUTC", "timezone%3DAsia%2FKathmandu%20-c%20datestyle%3DSQL%2CDMY%20-c%20intervalstyle%3Dpostgres_verbose%20-c%20extra_float_digits%3D0"
	w.env["DATABASE_URL"] = strings.Replace(w.db.URL, utc, other, 1)
	if w.env["DATABASE_URL"] == w.db.URL {
		tb.Fatalf("no %s in the connection string", utc)
	}
	return w
}

// arrived compares what is stored of the rows, which have ids from first on, with
// what was sent.
func (w *caseWorld) arrived(rt *rapid.T, columns []valueColumn, first int, rows [][]cell) {
	var list strings.Builder
	for i, c := range columns {
		fmt.Fprintf(&list, ", coalesce('=' || %s, 'null')", c.reading(i))
	}
	stored := w.db.Rows(`select id`+list.String()+` from plain join converted using (id) where id >= $1 order by id`, first)
	if len(stored) != len(rows) {
		rt.Fatalf("%d of %d rows are stored; set aside was\n%s", len(stored), len(rows),
			w.db.Dump(`select record_offset, reason, column_name, detail from dead_letter where record_offset >= $1 order by 1`, first))
	}
	for n, row := range rows {
		for i, c := range columns {
			got := stored[n][1+i]
			if text, ok := strings.CutPrefix(got, "="); ok && c.canon != nil {
				got = textOf(c.canon(text))
			}
			if got != row[i].want {
				rt.Errorf("%s: sent %s, want %s, stored %s", c.name, row[i].sent, row[i].want, got)
			}
		}
	}
}

// canonJSON writes JSON with its names in order and each number's digits kept.
func canonJSON(text string) string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return "no JSON: " + text
	}
	return toJSON(v)
}

func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
