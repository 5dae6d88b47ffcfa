package sinks_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// as is a column from field v, read by conversions joined by a comma.
func as(t *testing.T, names string) sinks.Column[schema.Row] {
	t.Helper()
	c, err := sinks.Field("v", "v").As(strings.Split(names, ",")...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Proves what each conversion makes of a value in a column of PostgreSQL, and
// what it refuses.
func TestConversions(t *testing.T) {
	for _, c := range []struct{ typ, as, values, want string }{
		{
			"timestamptz", "epoch_seconds", `1741149225|"1741149225.844195"|1741149225.8441951|-1|1e9|0|253402300800|"x"|true|null|-62135596801|1e30`,
			`2025-03-05 04:33:45+00 2025-03-05 04:33:45.844195+00 value_range 1969-12-31 23:59:59+00 2001-09-09 01:46:40+00 1970-01-01 00:00:00+00 value_range value_type value_type - value_range value_range`,
		},
		{"timestamptz", "epoch_millis", `1741149225844|1741149225844.195|-1`, `2025-03-05 04:33:45.844+00 2025-03-05 04:33:45.844195+00 1969-12-31 23:59:59.999+00`},
		{"timestamptz", "epoch_micros", `1741149225844195|1741149225844195.5`, `2025-03-05 04:33:45.844195+00 value_range`},
		{"timestamptz", "epoch_nanos", `1741149225844195000|1741149225844195123|0.5`, `2025-03-05 04:33:45.844195+00 value_range value_range`},
		{"timestamptz", "epoch_nanos,truncate", `1741149225844195123`, `2025-03-05 04:33:45.844195+00`},
		{"timestamp", "epoch_millis", `1741149225844`, `2025-03-05 04:33:45.844`},
		{"date", "epoch_days", `20152|-1|0|1.5|2932897|1e300`, `2025-03-05 1969-12-31 1970-01-01 value_range value_range value_range`},
		{"time", "time_millis", `35245000|86400000|-1`, `09:47:25 value_range value_range`},
		{"time", "time_micros", `20192000001|0.5`, `05:36:32.000001 value_range`},
		{"timestamptz", "truncate", `"2025-03-05T04:33:45.844195999+01:00"|"2025-03-05T04:33:45Z"|1`, `2025-03-05 03:33:45.844195+00 2025-03-05 04:33:45+00 value_type`},
		{"text", "strip_nul", `"a\u0000b\u0000"|"a"|1`, `ab a 1`},
		{"bytea", "base64", `"aGk="|"aGk"|"-_8"|"+/8="|""|"a"|"aGl="|"aG\nk="|1`, `\x6869 \x6869 \xfbff \xfbff \x value_type value_type value_type value_type`},
		{"bytea", "hex", `"dEad"|"\\xde"|"d"|""`, `\xdead value_type value_type \x`},
		{
			"numeric", "decimal", `{"scale":18,"value":"PN5v/5cy1UXVj9kw804="}|1.50|"1.50"|{"scale":2,"value":"xA=="}|{"scale":-2,"value":"AQ=="}|{"scale":0,"value":"AA=="}|{"scale":2,"value":""}|{"scale":2}|{"scale":99999,"value":"AQ=="}|"x"|[1]|{"scale":2,"value":"AQ==","x":1}`,
			`1234567890123456.123456789012345678 1.50 1.50 -0.60 100 0 value_type value_type value_range value_type value_type value_type`,
		},
		{"numeric(15,5)", "decimal:5", `"PA=="|"W42A"|"xA=="|""|"*"`, `0.00060 60.00000 -0.00060 value_type value_type`},
	} {
		t.Run(c.as, func(t *testing.T) {
			db := tablestest.New(t)
			db.Exec(fmt.Sprintf(`create table one (v %s)`, c.typ))
			sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "one", Columns: []sinks.Column[schema.Row]{as(t, c.as)}}))
			var got []string
			for _, v := range strings.Split(c.values, "|") {
				db.Exec(`truncate one`)
				if f, ok := asFault(apply(t, db, sink, batch(t, schema.NewFields("v"), `k={"v":`+v+`}`))); ok {
					got = append(got, string(f.Reason))
					continue
				}
				got = append(got, db.Value(`select coalesce(v::text, '-') from one`))
			}
			equal(t, strings.Join(got, " "), c.want)
		})
	}
}

// Proves that a missing value stays missing, and that an unknown name is told
// with the nearest one.
func TestConversionNames(t *testing.T) {
	v, err := as(t, "epoch_millis").Value(&batch(t, schema.NewFields("v"), `k={}`)[0])
	if err != nil || v.Kind != schema.Missing {
		t.Errorf("got %v, %v", v, err)
	}
	for name, want := range map[string]string{
		"epoch_milis": `column "v": no conversion "epoch_milis"; nearest is "epoch_millis"`, "decimal:x": `conversion "decimal:x": the scale is a whole number`,
		"decimal:SCALE": `conversion "decimal:SCALE": the scale`, "": `no conversion ""`,
	} {
		if _, err := sinks.Field("v", "v").As(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Proves with PostgreSQL as oracle that a number of any unit is the moment that
// to_timestamp or an interval says.
func TestEpochsEqualPostgres(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table one (n numeric, v timestamptz)`)
	column := as(t, "epoch_micros")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "one", Columns: []sinks.Column[schema.Row]{sinks.Field("n", "v"), column}}))
	rapid.Check(t, func(rt *rapid.T) {
		var lines []string
		for range 20 {
			lines = append(lines, fmt.Sprintf(`k={"v":%d}`, rapid.Int64Range(-62135596800e6, 253402300799999999).Draw(rt, "micros")))
		}
		db.Exec(`truncate one`)
		mustApply(t, db, sink, batch(t, schema.NewFields("v"), lines...))
		if wrong := db.Value(`select count(*) from one where v is distinct from timestamptz 'epoch' + floor(n / 3600000000) * interval '1 hour' + (n % 3600000000 + case when n % 3600000000 < 0 then 3600000000 else 0 end) * interval '1 microsecond'`); wrong != "0" {
			rt.Fatalf("%s of %v differ: %s", wrong, lines, db.Dump(`select n, v from one`))
		}
	})
}

// Proves that the bytes of any integer come back as that integer, whatever the
// scale, with all its digits.
func TestUnscaledEqualsIntegers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, scale := rapid.Int64().Draw(rt, "n"), rapid.IntRange(0, 30).Draw(rt, "scale")
		c, err := sinks.Col("v", func(schema.Message[int]) any { return binary.BigEndian.AppendUint64(nil, uint64(n)) }).As(fmt.Sprintf("decimal:%d", scale))
		if err != nil {
			rt.Fatal(err)
		}
		v, err := c.Value(&schema.Message[int]{Record: &schema.Record{Time: time.UnixMilli(0)}})
		if err != nil {
			rt.Fatal(err)
		}
		digits := strings.Replace(string(v.Raw), ".", "", 1)
		if got := strings.TrimLeft(strings.TrimPrefix(digits, "-"), "0"); got != strings.TrimLeft(strings.TrimPrefix(fmt.Sprint(n), "-"), "0") {
			rt.Fatalf("%d at scale %d is %s", n, scale, v.Raw)
		}
	})
}

// Proves that the documentation's tables name each rule and conversion once.
func TestRulesMarkdown(t *testing.T) {
	page := sinks.RulesMarkdown()
	if got, want := strings.Count(page, "\n| "), len(sinks.Rules())+len(sinks.Conversions())+3; got != want {
		t.Errorf("%d rows, want %d:\n%s", got, want, page)
	}
	for _, c := range sinks.Conversions() {
		if !strings.Contains(page, "| `"+c.Name+"` |") {
			t.Error(c.Name)
		}
	}
}
