package sinks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// literals draws texts of a type.
var literals = map[string]*rapid.Generator[string]{
	"boolean":          rapid.SampledFrom([]string{"true", "false", "t", "F", "yes", "NO", "on", "off", "1", "0"}),
	"smallint":         integers(-32768, 32767),
	"integer":          integers(-2147483648, 2147483647),
	"bigint":           integers(-9223372036854775808, 9223372036854775807),
	"numeric":          decimals(),
	"numeric(40,12)":   rapid.StringMatching(`-?[0-9]{1,28}(\.[0-9]{1,12})?`),
	"real":             floats(32),
	"double precision": floats(64),
	"text":             rapid.String().Filter(noNUL),
	"varchar(20)":      rapid.StringN(0, 20, -1).Filter(noNUL),
	"char(20)":         rapid.StringN(0, 20, -1).Filter(noNUL),
	"uuid":             rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9A-F]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}`),
	"bytea":            rapid.StringMatching(`\\x([0-9a-fA-F]{2}){0,20}|([a-z'"]|\\\\|\\[0-3][0-7][0-7]){0,20}`),
	"date":             dates(),
	"timestamp":        moments(`(|Z)`),
	"timestamptz":      moments(`(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9]|[+-]0[0-9]|[+-]0[0-9]30)`),
	"timestamptz(3)":   rapid.StringMatching(`20[0-9]{2}-0[1-9]-1[0-9]T1[0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3}0{0,5})?Z`),
	"interval":         rapid.StringMatching(`[0-9]{1,3} (days|months)( [0-9]:[0-5][0-9])?`),
	"time":             rapid.StringMatching(`1[0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?`),
	"inet":             rapid.StringMatching(`10\.[1-9]\.[1-9]\.[1-9](/(24|32))?`),
	"int4range":        rapid.StringMatching(`[\[(][1-4],[5-9][\])]`),
	"integer[]":        rapid.StringMatching(`\{([0-9](,[0-9]){0,4})?\}`),
	"bit(4)":           rapid.StringMatching(`[01]{4}`),
	"mood":             rapid.SampledFrom([]string{"sad", "ok", "so, so"}),
	"price":            rapid.StringMatching(`[1-9][0-9]{0,5}(\.[0-9]{1,2})?`),
	"words":            rapid.StringMatching(`\{[a-z]{1,3}(,"[a-z ]{1,3}"){0,3}\}`),
}

func noNUL(s string) bool { return !strings.Contains(s, "\x00") }

func integers(low, high int64) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("%d", rapid.Int64Range(low, high).Draw(t, "n"))
	})
}

func decimals() *rapid.Generator[string] {
	return rapid.StringMatching(`-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?`)
}

func floats(bits int) *rapid.Generator[string] {
	exp := `[0-9]`
	if bits == 64 {
		exp = `[0-9]{1,2}|1[0-9]{2}`
	}
	return rapid.OneOf(rapid.StringMatching(`-?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?(`+exp+`))?`),
		rapid.SampledFrom([]string{"NaN", "Infinity", "-Infinity"}))
}

func dates() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[0-9]{3}[1-9]-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])`),
		rapid.SampledFrom([]string{"infinity", "-infinity", "2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31", "1999-12-31"}))
}

func moments(offset string) *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{"infinity", "-infinity"}), rapid.StringMatching(
		`[0-9]{3}[1-9]-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6}0{0,2})?`+offset))
}

// Proves for each type, with PostgreSQL's own parser as oracle, that a value
// which is encoded here is stored as if its text had been given to PostgreSQL,
// both in a parameter and in the stream of a COPY, which takes more rows.
func TestValuesEqualPostgres(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create type mood as enum ('sad', 'ok', 'so, so'); create domain price as numeric(10,2) check (value > 0); create domain words as text[]`)
	n := 0
	for typ, literal := range literals {
		n++
		table := fmt.Sprintf("v%d", n)
		t.Run(typ, func(t *testing.T) {
			db.Exec(fmt.Sprintf(`create table %s (literal text, v %s)`, table, typ))
			sink := prepared(t, db, sinks.Sink[string](&sinks.Insert[string]{Table: table, Columns: []sinks.Column[string]{
				sinks.Col("literal", func(m schema.Message[string]) any { return m.Body }),
				sinks.Col("v", func(m schema.Message[string]) any { return m.Body }),
			}}))
			rapid.Check(t, func(rt *rapid.T) {
				drawn := rapid.SliceOfN(literal, 1, 20).Draw(rt, "literals")
				var messages []schema.Message[string]
				for range rapid.SampledFrom([]int{1, 40}).Draw(rt, "rounds") {
					for i, s := range drawn {
						messages = append(messages, schema.Message[string]{Record: &schema.Record{Offset: int64(i), Value: []byte{}}, Body: s})
					}
				}
				differ(rt, db, sink, messages, fmt.Sprintf(
					`select literal, v::text, literal::%s::text from %s where v::text is distinct from literal::%s::text and $1 = 0`, typ, table, typ))
			})
		})
	}
}

// differ fails where the query finds a row after the batch.
func differ(rt *rapid.T, db *tablestest.DB, sink sinks.Sink[string], messages []schema.Message[string], query string) {
	ctx := rt.Context()
	tx, err := db.Pool.Begin(ctx)
	if err != nil {
		rt.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if err := sink.Apply(ctx, tx, messages); err != nil {
		rt.Fatal(err)
	}
	rows, err := tx.Query(ctx, query, 0)
	if err != nil {
		rt.Fatal(err)
	}
	var literal, got, want string
	_, err = pgx.ForEachRow(rows, []any{&literal, &got, &want}, func() error {
		return fmt.Errorf("%q was stored as %q and is %q", literal, got, want)
	})
	if err != nil {
		rt.Fatal(err)
	}
}

// stored inserts JSON values into a column of the type, each alone, and tells
// what became of each: the text that is stored, or the reason of the fault.
func stored(t *testing.T, typ string, values ...string) string {
	t.Helper()
	db := tablestest.New(t)
	db.Exec(fmt.Sprintf(`create table one (v %s)`, typ))
	fields := schema.NewFields("v")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "one", Fields: fields}))
	var out []string
	for _, v := range values {
		db.Exec(`truncate one`)
		err := apply(t, db, sink, batch(t, fields, fmt.Sprintf(`k={"v":%s}`, v)))
		if f, ok := asFault(err); ok {
			out = append(out, string(f.Reason))
		} else if err != nil {
			out = append(out, sqlstate(t, err))
		} else {
			out = append(out, db.Value(`select coalesce(v::text, '-') from one`))
		}
	}
	return strings.Join(out, " ")
}

// Proves the table of rules, type by type, with the cases C13 and C23 among them.
func TestRules(t *testing.T) {
	for _, c := range []struct{ typ, values, want string }{
		{
			"bigint", `9007199254740993|73314510714175488|9223372036854775807|9223372036854775808|18446744073709551615|327267367867168100000|-9223372036854775808|-9223372036854775809|1.0|1e3|1.5|10e-1|"1"|"x"|""|true|[1]|1e400|-0|0.000`,
			`9007199254740993 73314510714175488 9223372036854775807 value_range value_range value_range -9223372036854775808 value_range 1 1000 value_range 1 1 value_type value_type value_type value_type value_range 0 0`,
		},
		{
			"numeric", `9007199254740993|327267367867168100000|1.50|1e3|"-0.000001"|"NaN"|1e131072|1e-16384|0e99999|null`,
			`9007199254740993 327267367867168100000 1.50 1000 -0.000001 value_type value_range value_range 0 -`,
		},
		{"numeric(5,-2)", `12300|12345|"149"|1.23E+4|100000000`, `12300 value_range value_range 12300 value_range`},
		{"numeric(5,2)", `999.99|999.990000|1000|0.001|1e-2|0.00`, `999.99 999.99 value_range value_range 0.01 0.00`},
		{"smallint", `32767|32768|-32768|-32769`, `32767 value_range -32768 value_range`},
		{"double precision", `0.1|1e308|1e309|1e-400|"Infinity"|"0x10"|true`, `0.1 1e+308 value_range value_range Infinity value_type value_type`},
		{"boolean", `true|false|"on"|1|"maybe"`, `true false true value_type value_type`},
		{"text", `"a"|1.50|true|{"a": 1}|[1,2]|"a\u0000b"`, `a 1.50 true {"a": 1} [1,2] value_range`},
		{"varchar(3)", `"abc"|"äöü"|"abcd"|"ab  "|1234`, `abc äöü value_range value_range value_range`},
		{"char(3)", `"abc"|"abcd"|"abc   "`, `abc value_range abc`},
		{
			"uuid", `"00000000-0000-0000-0000-00000000000a"|"{0000000000000000000000000000000A}"|"x"|1`,
			`00000000-0000-0000-0000-00000000000a value_type value_type value_type`,
		},
		{"bytea", `"\\xDEad"|"a\\000b"|"\\x1"|"a\\b"|"aGk="|1`, `\xdead \x610062 value_type value_type \x61476b3d value_type`},
		{"json", `{"b":1,  "a":[]}|"x\"y"|1.50|null`, `{"b":1,  "a":[]} "x\"y" 1.50 -`},
		{"jsonb", `{"b":1,  "a":[]}|"x"|1.50|true|"\u0000"`, `{"a": [], "b": 1} "x" 1.50 true 22P05`},
		{
			"timestamptz", `"2025-03-05T04:33:45.844195Z"|"2025-03-05T04:33:45.8Z"|"2025-03-05T04:33:45.844195123Z"|"2025-03-05T04:33:45.844195000Z"|"2025-03-05T04:33:45Z"|"2025-03-05T04:33:60Z"|"2025-03-05 04:33:45.844195+00"|"2025-03-05T04:33:45"|"2025-02-29T00:00:00Z"|"0000-01-01T00:00:00Z"|"yesterday"|1741149225`,
			`2025-03-05 04:33:45.844195+00 2025-03-05 04:33:45.8+00 value_range 2025-03-05 04:33:45.844195+00 2025-03-05 04:33:45+00 value_range 2025-03-05 04:33:45.844195+00 value_type value_range value_range value_type value_type`,
		},
		{"timestamptz(3)", `"2025-03-05T04:33:45.844Z"|"2025-03-05T04:33:45.8441Z"`, `2025-03-05 04:33:45.844+00 value_range`},
		{"timestamp", `"2025-03-05T04:33:45"|"2025-03-05T04:33:45Z"|"2025-03-05T04:33:45+01:00"`, `2025-03-05 04:33:45 2025-03-05 04:33:45 value_type`},
		{"date", `"2025-03-05"|"2025-03-05T00:00:00Z"|"infinity"|20250305`, `2025-03-05 value_range infinity value_type`},
		{"interval", `"1 day"|"P1D"|"soon"|90|"1.000001 s"|"1.0000001 s"|"0.5 hours"`, `1 day 1 day 22007 00:01:30 00:00:01.000001 value_range 00:30:00`},
		{"interval(3)", `"1.123 s"|"1.1234 s"`, `00:00:01.123 value_range`},
		{"time", `"10:30"|"10:30:15.123456"|"10:30:15.1234567"|"10:30:15+01"|"24:00:00"|"24:00:01"|"10:30:60"|"x"|1030`, `10:30:00 10:30:15.123456 value_range value_type 24:00:00 value_range value_range value_type value_type`},
		{"timetz(3)", `"10:30:15.123Z"|"10:30:15.1234Z"|"10:30:15+02:00"|"10:30:15"|"24:00:00Z"`, `10:30:15.123+00 value_range 10:30:15+02 value_type 24:00:00+00`},
		{"tstzrange", `"[2026-01-02T03:04:05Z,)"|"[2026-01-02T03:04:05.1234567Z,)"|"]"`, `["2026-01-02 03:04:05+00",) value_range 22P02`},
		{"money", `1.50|1.505|"x"`, `$1.50 value_range 22P02`},
		{"name", `"a"|"` + strings.Repeat("n", 64) + `"`, `a value_range`},
		{`"char"`, `"a"|"ab"`, `a value_range`},
		{"inet", `"10.0.0.1/8"|"::1"|"10.0.0"`, `10.0.0.1/8 ::1/128 22P02`},
		{"cidr", `"10.0.0.0/8"|"10.0.0.1/8"`, `10.0.0.0/8 22P02`},
	} {
		t.Run(c.typ, func(t *testing.T) { equal(t, stored(t, c.typ, strings.Split(c.values, "|")...), c.want) })
	}
}

// Proves case C06: infinite times in any row of a batch.
func TestInfinity(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table i (id int, at timestamptz)`)
	fields := schema.NewFields("id", "at")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "i", Fields: fields}))
	mustApply(t, db, sink, batch(t, fields,
		`0={"id":0,"at":"2026-01-02T03:04:05Z"}`, `1={"id":1,"at":"-infinity"}`,
		`2={"id":2,"at":"2026-01-03T00:00:00+02:00"}`, `3={"id":3,"at":"infinity"}`))
	equal(t, compact(db, `select at from i order by id`), "2026-01-02 03:04:05+00 -infinity 2026-01-02 22:00:00+00 infinity")
}

// Proves case C37: JSON arrays fit array columns exactly, each element by the
// rule of its type, or are their message's fault.
func TestArrays(t *testing.T) {
	equal(t, stored(t, "float8[]", `[30.7,31,5]`, `[]`, `[[1,2],[3,4]]`, `[[1,2],[3]]`, `"{1,2}"`, `1`, `[null,1]`),
		`{30.7,31,5} {} {{1,2},{3,4}} value_range {1,2} value_type {NULL,1}`)
	equal(t, stored(t, "text[]", `["x"]`, `[null,"a"]`, `["a,b","\"q\"","{}","NULL","\\"]`, `"x"`, `[true,1.50]`, `["\u0000"]`),
		`{x} {NULL,a} {"a,b","\"q\"","{}","NULL","\\"} value_type {true,1.50} value_range`)
	equal(t, stored(t, "jsonb[]", `[{"a":"b\"c"}]`), `{"{\"a\": \"b\\\"c\"}"}`)
	equal(t, stored(t, "numeric(5,2)[]", `[1.5,"2.25"]`, `[0.001]`, `[1000]`, `"{0.001}"`, `[[1],[2]]`, `["x"]`),
		`{1.50,2.25} value_range value_range value_type {{1.00},{2.00}} value_type`)
	equal(t, stored(t, "int[]", `[1.0,1e3]`, `[1.5]`, `[99999999999]`, `[1,[2]]`, `[[1],2]`, `[[]]`, `[[[[[[[1]]]]]]]`), `{1,1000} value_range value_range value_range value_range value_range value_range`)
	equal(t, stored(t, "timestamptz[]", `["2026-01-02T03:04:05.1+01:00","infinity"]`, `["2026-01-02T03:04:05.1234567Z"]`, `["2026-01-02T03:04:05"]`),
		`{"2026-01-02 02:04:05.1+00",infinity} value_range value_type`)
	equal(t, stored(t, "varchar(2)[]", `["ab"]`, `["ab "]`, `"{ab}"`), `{ab} value_range value_type`)
	equal(t, stored(t, "jsonb[]", `["x",1,{"a":[1]}]`), `{"\"x\"",1,"{\"a\": [1]}"}`)
	equal(t, stored(t, "jsonb", `[null,[1],"x"]`, `[]`), `[null, [1], "x"] []`)
}

// Proves with PostgreSQL's own parser as oracle that JSON arrays of texts and of
// numbers arrive as PostgreSQL reads the same JSON.
func TestArraysEqualPostgres(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table a (t text[], n numeric[], j jsonb)`)
	fields := schema.NewFields("t", "n", "j")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "a", Fields: fields}))
	element := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.String().Filter(noNUL), func(s string) any { return s }),
		rapid.SampledFrom([]any{"NULL", "null", `"`, `\`, "{}", "{", ",", "", " ", "a,b", `\"`, "\n"}))
	rapid.Check(t, func(rt *rapid.T) {
		texts, err := json.Marshal(rapid.SliceOfN(element, 0, 6).Draw(rt, "texts"))
		if err != nil {
			rt.Fatal(err)
		}
		numbers := "[" + strings.Join(rapid.SliceOfN(rapid.StringMatching(`-?[1-9][0-9]{0,30}(\.[0-9]{1,20})?|null`), 0, 6).Draw(rt, "numbers"), ",") + "]"
		db.Exec(`truncate a`)
		mustApply(t, db, sink, batch(t, fields, fmt.Sprintf(`k={"t":%s,"n":%s,"j":{"t":%s,"n":%s}}`, texts, numbers, texts, numbers)))
		if got := db.Value(`select t = array(select jsonb_array_elements_text(j->'t')) and n = array(select jsonb_array_elements_text(j->'n')::numeric) from a`); got != "t" {
			rt.Fatalf("%s %s: %s", texts, numbers, db.Dump(`select * from a`))
		}
	})
}
