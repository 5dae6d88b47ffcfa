package registry_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/registry"
)

// avroOf returns the decoder of unframed records of a schema.
func avroOf(tb testing.TB, text string, paths ...string) schema.Decoder[schema.Row] {
	tb.Helper()
	decode, err := registry.Avro(text, schema.NewFields(paths...))
	if err != nil {
		tb.Fatal(err)
	}
	return decode
}

// recordOf is the schema of a record of one field, v.
func recordOf(fieldType string) string {
	return `{"type":"record","name":"R","fields":[{"name":"v","type":` + fieldType + `}]}`
}

// A decimal's scale is the schema's: unscaled 60 with scale 5 is 0.00060, and
// trailing zeros stay. No bytes at all are no number.
func TestAvroDecimalScale(t *testing.T) {
	f := newFake(t)
	f.seed(901, sr.TypeAvro, `{"type":"record","name":"R","fields":[{"name":"id","type":"int"},
		{"name":"amt","type":{"type":"bytes","logicalType":"decimal","precision":15,"scale":5}}]}`)
	decode := open(t, f).Avro(schema.NewFields("id", "amt"))
	for value, want := range map[string]string{
		"AAAAA4UAAjw=":         "0.00060",
		"AAAAA4UCBluNgA==":     "60.00000",
		"AAAAA4UEAsQ=":         "-0.00060",
		"AAAAA4UIDgONfqTGf/8=": "9999999999.99999",
	} {
		wantField(t, read(t, decode, unbase64(t, value)), "amt", schema.Number, want)
	}
	wantFault(t, decode, unbase64(t, "AAAAA4UGAA=="), `in "amt": `, "no bytes")
}

// Logical types within unions come out as what they mean, without a wrapper
// object, beyond the year 2262 too; all null is Null, not Missing.
func TestAvroLogicalTypes(t *testing.T) {
	f := newFake(t)
	f.seed(2501, sr.TypeAvro, `{"type":"record","name":"Times","fields":[{"name":"id","type":"int"},
		{"name":"t_ms","type":["null",{"type":"int","logicalType":"time-millis"}]},
		{"name":"t_us","type":["null",{"type":"long","logicalType":"time-micros"}]},
		{"name":"ts_us","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},
		{"name":"dec","type":["null",{"type":"bytes","logicalType":"decimal","precision":16,"scale":2}]}]}`)
	decode := open(t, f).Avro(schema.NewFields("id", "t_ms", "t_us", "ts_us", "dec", "none"))
	row := read(t, decode, unbase64(t, "AAAACcUCApCvziECgODLuJYBAoCA3vLf/9/cAQICIQ=="))
	wantField(t, row, "id", schema.Number, "1")
	wantField(t, row, "t_ms", schema.String, "09:47:25")
	wantField(t, row, "t_us", schema.String, "05:36:32")
	wantField(t, row, "ts_us", schema.String, "3939-01-01T00:00:00Z")
	wantField(t, row, "dec", schema.Number, "0.33")
	wantField(t, row, "none", schema.Missing, "")

	row = read(t, decode, unbase64(t, "AAAACcUEAAAAAA=="))
	for _, path := range []string{"t_ms", "t_us", "ts_us", "dec"} {
		wantField(t, row, path, schema.Null, "")
	}
}

// Each type, by bytes that were worked out by hand from the specification.
func TestAvroTypes(t *testing.T) {
	for _, c := range []struct {
		avro string
		body string
		kind schema.Kind
		want string
	}{
		{`"boolean"`, "\x01", schema.Bool, "true"},
		{`"int"`, "\xff\xff\xff\xff\x0f", schema.Number, "-2147483648"},
		{`"long"`, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", schema.Number, "9223372036854775807"},
		{`"long"`, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", schema.Number, "-9223372036854775808"},
		{`"float"`, "\xcd\xcc\xcc\x3d", schema.Number, "0.1"},
		{`"double"`, "\x9a\x99\x99\x99\x99\x99\xb9\x3f", schema.Number, "0.1"},
		{`"double"`, "\x00\x00\x00\x00\x00\x00\xf8\x7f", schema.String, "NaN"},
		{`"double"`, "\x00\x00\x00\x00\x00\x00\xf0\xff", schema.String, "-Infinity"},
		{`"string"`, "\x06Zo\xc3", schema.Missing, "text at byte 2: invalid UTF-8"},
		{`"string"`, "\x08Zo\xc3\xab", schema.String, "Zoë"},
		{`"string"`, "\x06\xef\xbf\xbd", schema.String, "\ufffd"}, // sent as such, and no fault
		{`"bytes"`, "\x04\xff\xfe", schema.Bytes, "\xff\xfe"},
		{`{"type":"fixed","name":"F","size":2}`, "\xff\x00", schema.Bytes, "\xff\x00"},
		{`{"type":"enum","name":"E","symbols":["A","B"]}`, "\x02", schema.String, "B"},
		{`{"type":"array","items":"long"}`, "\x04\x02\x04\x00", schema.Array, "[1,2]"},
		{`{"type":"map","values":"bytes"}`, "\x04\x02b\x02\xff\x02a\x00\x00", schema.Object, `{"a":"","b":"/w=="}`},
		{`{"type":"record","name":"S","fields":[{"name":"z","type":"string"},{"name":"a","type":["null","int"]}]}`, "\x04\"\x01\x02\x02", schema.Object, `{"a":1,"z":"\"\u0001"}`},
		{`{"type":"int","logicalType":"date"}`, "\x01", schema.String, "1969-12-31"},
		{`{"type":"int","logicalType":"date"}`, "\xc2\x82\xe6\x02", schema.String, "+10000-01-01"},
		{`{"type":"int","logicalType":"time-millis"}`, "\x01", schema.Missing, "time-millis -1 is no time"},
		{`{"type":"int","logicalType":"time-millis"}`, "\x80\xf0\xb2\x52", schema.Missing, "time-millis 86400000 is no time"},
		{`{"type":"long","logicalType":"time-micros"}`, "\x02", schema.String, "00:00:00.000001"},
		{`{"type":"long","logicalType":"timestamp-millis"}`, "\x01", schema.String, "1969-12-31T23:59:59.999Z"},
		{`{"type":"long","logicalType":"timestamp-nanos"}`, "\x02", schema.String, "1970-01-01T00:00:00.000000001Z"},
		{`{"type":"long","logicalType":"local-timestamp-millis"}`, "\x02", schema.String, "1970-01-01T00:00:00.001"},
		{`{"type":"long","logicalType":"local-timestamp-micros"}`, "\x02", schema.String, "1970-01-01T00:00:00.000001"},
		{`{"type":"long","logicalType":"local-timestamp-nanos"}`, "\x02", schema.String, "1970-01-01T00:00:00.000000001"},
		{`{"type":"long","logicalType":"timestamp-micros"}`, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", schema.String, "+294247-01-10T04:00:54.775807Z"},
		{`{"type":"long","logicalType":"timestamp-micros"}`, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", schema.String, "-290308-12-21T19:59:05.224192Z"},
		{`{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":4,"scale":2}`, "\xff\x85", schema.Number, "-1.23"},
		{`{"type":"bytes","logicalType":"big-decimal"}`, "\x08\x04\x01\x2c\x04", schema.Number, "3.00"},
		{`{"type":"bytes","logicalType":"big-decimal"}`, "\x08\x04\x01\x2c\x03", schema.Number, "30000"},
		{`{"type":"bytes","logicalType":"big-decimal"}`, "\x0e\x02\x01\xfe\xff\xff\xff\x0f", schema.Missing, "scale of 2147483647 is too large"},
		{`{"type":"bytes","logicalType":"big-decimal"}`, "\x02\x04", schema.Missing, "cut short"},
		{`{"type":"fixed","name":"F","size":12,"logicalType":"duration"}`, "\x0e\x00\x00\x00\x02\x00\x00\x00\xe8\x03\x00\x00", schema.String, "P1Y2M2DT1S"},
		{`{"type":"fixed","name":"F","size":16,"logicalType":"uuid"}`, "\x01\x90\xf3\xc2\x7a\x1b\x7c\x33\x9d\x4e\x5f\x60\x71\x82\x93\xa4", schema.String, "0190f3c2-7a1b-7c33-9d4e-5f60718293a4"},
		{`{"type":"string","logicalType":"uuid"}`, "\x02x", schema.String, "x"},
		{`{"type":"string","logicalType":"decimal","precision":4}`, "\x02x", schema.String, "x"}, // no decimal by the specification
		{`{"type":"string","logicalType":"date"}`, "\x02x", schema.String, "x"},
		{`{"type":"string","logicalType":"time-millis"}`, "\x02x", schema.String, "x"},
		{`{"type":"string","logicalType":"big-decimal"}`, "\x02x", schema.String, "x"},
		{`{"type":"fixed","name":"F","size":4,"logicalType":"duration"}`, "abcd", schema.Bytes, "abcd"},
		{`{"type":"bytes","logicalType":"big-decimal"}`, "\x06\x02\x01\x80", schema.Missing, "scale is cut short"},
		{`{"type":"bytes","logicalType":"decimal","precision":4}`, "\x82\x80\x08" + strings.Repeat("\x01", 65537), schema.Missing, "65537 bytes is too large"},
		{`{"type":"array","items":"string"}`, "\x02\x02\xff\x00", schema.Missing, `in "v": text at byte 0: invalid UTF-8`},
		{`{"type":"map","values":"string"}`, "\x02\x02k\x02\xff\x00", schema.Missing, "invalid UTF-8"},
		{`{"type":"map","values":"string"}`, "\x02\x02\xff\x02k\x00", schema.Missing, "a name: text at byte 0: invalid UTF-8"},
		{`{"type":"long","logicalType":"weather"}`, "\x02", schema.Number, "1"},
	} {
		decode := avroOf(t, recordOf(c.avro), "v")
		if c.kind == schema.Missing {
			wantFault(t, decode, []byte(c.body), c.want)
			continue
		}
		t.Run(c.avro, func(t *testing.T) { wantField(t, read(t, decode, []byte(c.body)), "v", c.kind, c.want) })
	}
}

// A decimal of 34 digits with a scale of its own keeps all of them, and as it
// goes into JSON its bytes are what Connect writes into JSON.
func TestAvroDecimalOfItsOwnScale(t *testing.T) {
	unscaled := unbase64(t, "PN5v/5cy1UXVj9kw804=")
	payload := append([]byte{byte(2 * len(unscaled))}, unscaled...)
	wide := avroOf(t, recordOf(`{"type":"bytes","logicalType":"big-decimal"}`), "v")
	row := read(t, wide, append([]byte{byte(2*len(payload) + 2)}, append(payload, 2*18)...))
	wantField(t, row, "v", schema.Number, "1234567890123456.123456789012345678")

	structure := avroOf(t, recordOf(`{"type":"record","name":"VariableScaleDecimal","fields":[{"name":"scale","type":"int"},{"name":"value","type":"bytes"}]}`), "v")
	row = read(t, structure, append([]byte{2 * 18}, payload...))
	wantField(t, row, "v", schema.Object, `{"scale":18,"value":"PN5v/5cy1UXVj9kw804="}`)
}

// Paths lead into records, unions of records, and maps; an outer value may be
// mapped together with what is in it, and what is not there is Missing.
func TestAvroPaths(t *testing.T) {
	text := recordOf(`["null",{"type":"record","name":"S","fields":[{"name":"a.b","type":"int"},{"name":"m","type":{"type":"map","values":"string"}}]}]`)
	decode := avroOf(t, text, "v", `v.a\.b`, "v.m.x", "v.m.y", "v.a.b", "w", "v.a.b")
	row := read(t, decode, []byte("\x02\x0e\x02\x02x\x02!\x00"))
	wantField(t, row, "v", schema.Object, `{"a.b":7,"m":{"x":"!"}}`)
	wantField(t, row, `v.a\.b`, schema.Number, "7")
	wantField(t, row, "v.m.x", schema.String, "!")
	for _, path := range []string{"v.m.y", "v.a.b", "w"} {
		wantField(t, row, path, schema.Missing, "")
	}
	row = read(t, decode, []byte("\x00"))
	wantField(t, row, "v", schema.Null, "")
	wantField(t, row, "v.m.x", schema.Missing, "")
}

// What is wrong is found where it is not mapped, too: text that is none, and a
// record that is cut short or goes on behind its end.
func TestAvroUnmapped(t *testing.T) {
	decode := avroOf(t, recordOf(`{"type":"array","items":{"type":"map","values":"string"}}`), "w")
	read(t, decode, []byte("\x02\x02\x02k\x02v\x00\x00"))
	wantFault(t, decode, []byte("\x02\x02\x02k\x02\xff\x00\x00"), "invalid UTF-8")
	wantFault(t, decode, []byte("\x02\x02\x02k\x02v\x00"), "short buffer")
	wantFault(t, decode, []byte("\x02\x02\x02k\x02v\x00\x00\x00"), "ends at byte 8", "1 more")
	wantFault(t, decode, []byte{}, "short buffer")
}

// Nesting of 10,000 levels is a fault and no overflow; that of a few hundred is
// read. So are counts that no payload could hold.
func TestAvroDepth(t *testing.T) {
	decode := avroOf(t, `{"type":"record","name":"Node","fields":[{"name":"next","type":["null","Node"]}]}`, "next")
	wantFault(t, decode, append(bytes.Repeat([]byte{2}, 10_000), 0), "deep")
	row := read(t, decode, append(bytes.Repeat([]byte{2}, 300), 0))
	wantField(t, row, "next", schema.Object, strings.Repeat(`{"next":`, 300)+"null"+strings.Repeat("}", 300))

	// The path of the place is cut short: it is as long as the record is deep.
	_, err := decode(t.Context(), record(bytes.Repeat([]byte{2}, 300)))
	if err == nil || len(err.Error()) > 250 || !strings.Contains(err.Error(), `in "next.next.`) {
		t.Errorf("%v", err)
	}

	many := avroOf(t, recordOf(`{"type":"array","items":"null"}`), "v")
	wantFault(t, many, []byte("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"), "limit")
}

// Schemas are put together from those that they refer to, through several
// levels and with one that two others share, each asked for once.
func TestAvroReferences(t *testing.T) {
	f := newFake(t)
	ref := func(name, subject string) sr.SchemaReference {
		return sr.SchemaReference{Name: name, Subject: subject, Version: 1}
	}
	money := ref("t.Money", "money")
	f.SeedSchema("money", 1, 1, sr.Schema{Schema: `{"type":"record","namespace":"t","name":"Money","fields":[
		{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}}]}`})
	f.SeedSchema("line", 1, 2, sr.Schema{Schema: `{"type":"record","namespace":"t","name":"Line","fields":[{"name":"price","type":"t.Money"}]}`, References: []sr.SchemaReference{money}})
	f.SeedSchema("order", 1, 3, sr.Schema{Schema: `{"type":"record","namespace":"t","name":"Order","fields":[
		{"name":"total","type":"t.Money"},{"name":"line","type":"t.Line"}]}`, References: []sr.SchemaReference{ref("t.Line", "line"), money}})
	decode := open(t, f).Avro(schema.NewFields("total.amount", "line.price.amount"))
	row := read(t, decode, frame(3, 2, 100, 2, 99))
	wantField(t, row, "total.amount", schema.Number, "1.00")
	wantField(t, row, "line.price.amount", schema.Number, "0.99")
	if n := f.requests.Load(); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// A reference that the registry has lost is the message's fault, and named.
func TestAvroLostReference(t *testing.T) {
	f := newFake(t)
	f.SeedSchema("base", 1, 1, sr.Schema{Schema: `"int"`})
	f.SeedSchema("order", 1, 3, sr.Schema{Schema: recordOf(`"int"`), References: []sr.SchemaReference{{Name: "x", Subject: "base", Version: 1}}})
	read(t, open(t, f).Avro(schema.NewFields("v")), frame(3, 2))
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		lost := strings.Contains(r.URL.Path, "/subjects/base")
		if lost {
			http.Error(w, `{"error_code":40402,"message":"Version 1 not found."}`, http.StatusNotFound)
		}
		return lost
	})
	wantFault(t, open(t, f).Avro(schema.NewFields("v")), frame(3, 2), `"x"`, `"base"`, "Version 1 not found")
}

// A tombstone without a frame is a row of nothing, an empty payload is none.
func TestAvroUnframedTombstone(t *testing.T) {
	decode := avroOf(t, recordOf(`"int"`), "v")
	wantField(t, read(t, decode, nil), "v", schema.Missing, "")
	wantFault(t, decode, []byte{}, `in "v": `)
}

// A schema text that is none is an error of the start, and no fault of a message.
func TestAvroBadSchemaText(t *testing.T) {
	if _, err := registry.Avro(`{"type":"recor"}`, schema.NewFields("a")); err == nil || !strings.HasPrefix(err.Error(), "registry: avro schema: ") {
		t.Errorf("%v", err)
	}
}
