package schema_test

import (
	stdjson "encoding/json"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/apd/v3"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
)

type (
	status  string
	cents   int64
	blob    []byte
	enabled bool
)

// TestValueOf proves what each Go type becomes.
func TestValueOf(t *testing.T) {
	amount, _, err := apd.NewFromString("12345678901234567890.10")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 30, 22, 6, 50, 120, time.FixedZone("", 3600))
	text, pointer := "x", (*string)(nil)
	tests := []struct {
		name string
		in   any
		want schema.Value
	}{
		{"nil", nil, value(schema.Null, "")},
		{"string", "é", value(schema.String, "é")},
		{"derived string", status("open"), value(schema.String, "open")},
		{"pointer", &text, value(schema.String, "x")},
		{"nil pointer", pointer, value(schema.Null, "")},
		{"pointer to nil pointer", &pointer, value(schema.Null, "")},
		{"bytes", []byte{0xff}, value(schema.Bytes, "\xff")},
		{"no bytes", blob{}, schema.Value{Kind: schema.Bytes, Raw: []byte{}}},
		{"nil bytes", []byte(nil), value(schema.Null, "")},
		{"bool", true, value(schema.Bool, "true")},
		{"derived bool", enabled(false), value(schema.Bool, "false")},
		{"int64", int64(math.MinInt64), value(schema.Number, "-9223372036854775808")},
		{"uint64", uint64(math.MaxUint64), value(schema.Number, "18446744073709551615")},
		{"int8", int8(-1), value(schema.Number, "-1")},
		{"derived int", cents(250), value(schema.Number, "250")},
		{"float64", 0.1, value(schema.Number, "0.1")},
		{"float32", float32(0.1), value(schema.Number, "0.1")},
		{"great float", 1e300, value(schema.Number, "1e+300")},
		{"decimal", *amount, value(schema.Number, "12345678901234567890.10")},
		{"pointer to a decimal", amount, value(schema.Number, "12345678901234567890.10")},
		{"nil decimal", (*apd.Decimal)(nil), value(schema.Null, "")},
		{"great decimal", apd.New(12, 4000), value(schema.Number, "1.2E+4001")},
		{"time", at, value(schema.String, "2026-11-30T22:06:50.00000012+01:00")},
		{"uuid", uuid.MustParse("0190F3C2-7A1B-7C33-9D4E-5F60718293A4"), value(schema.String, "0190f3c2-7a1b-7c33-9d4e-5f60718293a4")},
		{"raw object", stdjson.RawMessage(` {"a":1} `), value(schema.Object, `{"a":1}`)},
		{"raw array", jsontext.Value(`[1]`), value(schema.Array, `[1]`)},
		{"raw number", jsontext.Value(`1.50`), value(schema.Number, `1.50`)},
		{"raw string", jsontext.Value(`"a\n"`), value(schema.String, "a\n")},
		{"raw null", jsontext.Value(`null`), value(schema.Null, "")},
		{"nil raw", stdjson.RawMessage(nil), value(schema.Null, "")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := schema.ValueOf(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestValueOfRefuses proves that what has no exact text is an error, not a guess.
func TestValueOfRefuses(t *testing.T) {
	for _, in := range []any{
		math.NaN(), float32(math.Inf(1)),
		apd.Decimal{Form: apd.NaN},
		&apd.Decimal{Form: apd.Infinite},
		"\xff", time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Second,
		struct{}{},
		[]string{"a"},
		map[string]int{},
		stdjson.RawMessage(`{"a":1,"a":2}`), stdjson.RawMessage(``), stdjson.RawMessage(`{} x`), complex(1, 2),
		[16]byte{},
	} {
		if got, err := schema.ValueOf(in); err == nil {
			t.Errorf("%T %v: got %v, want an error", in, in, got)
		}
	}
}

// TestValueOfFloatsRoundTrip proves that a float's text reads back as the float
// and is a JSON number.
func TestValueOfFloatsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "float")
		v, err := schema.ValueOf(f)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := strconv.ParseFloat(string(v.Raw), 64); err != nil || back != f || !stdjson.Valid(v.Raw) {
			t.Fatalf("%v became %s", f, v.Raw)
		}
	})
}

// TestValueOfDecimalsRoundTrip proves that a decimal keeps each digit and its
// scale, and is a JSON number that any strict reader takes.
func TestValueOfDecimalsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := apd.New(rapid.Int64().Draw(t, "coefficient"), rapid.Int32Range(-500, 500).Draw(t, "exponent"))
		v, err := schema.ValueOf(d)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := apd.NewFromString(string(v.Raw))
		if err != nil || back.CmpTotal(d) != 0 || !stdjson.Valid(v.Raw) {
			t.Fatalf("%v became %s", d, v.Raw)
		}
	})
}
