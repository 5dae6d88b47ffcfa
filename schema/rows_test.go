package schema_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
)

// row decodes payload into the given fields.
func row(tb testing.TB, payload string, paths ...string) (schema.Row, error) {
	tb.Helper()
	decode := schema.Rows(schema.NewFields(paths...))
	return decode(tb.Context(), &schema.Record{Topic: "t", Offset: 7, Value: []byte(payload)})
}

// mustRow decodes a payload that has to be good.
func mustRow(tb testing.TB, payload string, paths ...string) schema.Row {
	tb.Helper()
	r, err := row(tb, payload, paths...)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// value writes a value as a person would compare it.
func value(kind schema.Kind, raw string) schema.Value {
	if raw == "" {
		return schema.Value{Kind: kind}
	}
	return schema.Value{Kind: kind, Raw: []byte(raw)}
}

// wantFault holds err to a fault of the reason whose text contains each of texts.
func wantFault(tb testing.TB, err error, reason schema.Reason, texts ...string) {
	tb.Helper()
	fault, ok := errors.AsType[*schema.Fault](err)
	if !ok {
		tb.Fatalf("got error %v, want a fault %s", err, reason)
	}
	if fault.Reason != reason || fault.Record == nil {
		tb.Errorf("got reason %s and record %v, want %s and the record", fault.Reason, fault.Record, reason)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			tb.Errorf("got %q, want it to contain %q", err, text)
		}
	}
}

// TestRowsValues proves what each form of a JSON value becomes, wherever it lies.
func TestRowsValues(t *testing.T) {
	tests := []struct {
		name, payload, path string
		want                schema.Value
	}{
		{"missing", `{"b":1}`, "a", value(schema.Missing, "")},
		{"null", `{"a":null}`, "a", value(schema.Null, "")},
		{"true", `{"a":true}`, "a", value(schema.Bool, "true")},
		{"false", `{"a" : false }`, "a", value(schema.Bool, "false")},
		{"trailing zeros", `{"a":-1.500}`, "a", value(schema.Number, "-1.500")},
		{"text", `{"a":"René"}`, "a", value(schema.String, "René")},
		{"empty text", `{"a":""}`, "a", schema.Value{Kind: schema.String, Raw: []byte{}}},
		{"escapes", `{"a":"x\n\"\u00e9\ud83d\ude00\u0000"}`, "a", value(schema.String, "x\n\"é😀\x00")},
		{"object", `{"a": {"x" : [1, 2]} }`, "a", value(schema.Object, `{"x" : [1, 2]}`)},
		{"array", `{"a":[{"x":1},null]}`, "a", value(schema.Array, `[{"x":1},null]`)},
		{"nested", `{"a":{"x":1,"b":{"c":2}}}`, "a.b.c", value(schema.Number, "2")},
		{"nested in null", `{"a":null}`, "a.b", value(schema.Missing, "")},
		{"nested in an array", `{"a":[{"b":1}]}`, "a.b", value(schema.Missing, "")},
		{"nested in a text", `{"a":"b"}`, "a.b", value(schema.Missing, "")},
		{"dot in a name", `{"a.b":1,"a":{"b":2}}`, `a\.b`, value(schema.Number, "1")},
		{"escaped name", `{"\u0061":1}`, "a", value(schema.Number, "1")},
		{"empty name", `{"":1}`, "", value(schema.Number, "1")},
		{"space around", "\n{ \"a\"\t:\r1 } \n", "a", value(schema.Number, "1")},
		{"upper case differs", `{"A":1}`, "a", value(schema.Missing, "")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := mustRow(t, tt.payload, "other", tt.path).Get(tt.path)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", tt.path, tt.payload, diff)
			}
		})
	}
}

// TestRowsWholeAndInside proves that an object may be mapped as a whole and by
// its fields at once, at several depths, and that a path spelled in two ways
// fills both of its fields.
func TestRowsWholeAndInside(t *testing.T) {
	got := mustRow(t, `{"a" : {"b": {"c":1}, "d":"{"} , "e\\f":2}`, "a", "a.b", "a.b.c", "a.d", `e\f`, `e\\f`)
	want := []schema.Value{
		value(schema.Object, `{"b": {"c":1}, "d":"{"}`), value(schema.Object, `{"c":1}`),
		value(schema.Number, "1"), value(schema.String, "{"),
		value(schema.Number, "2"), value(schema.Number, "2"),
	}
	if diff := cmp.Diff(want, got.Values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRowsKeepsDigits proves that integers above 2^53, above int64 and above
// uint64 come out digit by digit, for each of them was rounded somewhere.
func TestRowsKeepsDigits(t *testing.T) {
	for _, n := range []string{
		"9007199254740993", "73314510714175488", "9223372036854775807", "9223372036854775808",
		"18446744073709551615", "327267367867168100000", "-9223372036854775808", "1.0", "1e3", "-0", "1E-400",
	} {
		got := mustRow(t, `{"id":0,"n":`+n+`}`, "n").Get("n")
		if diff := cmp.Diff(value(schema.Number, n), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// TestRowsNumbersRoundTrip proves the same for any number that JSON can write.
func TestRowsNumbersRoundTrip(t *testing.T) {
	fields := schema.NewFields("n", "o.n")
	decode := schema.Rows(fields)
	number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,5})?`)
	rapid.Check(t, func(t *rapid.T) {
		n := number.Draw(t, "number")
		got, err := decode(t.Context(), &schema.Record{Value: []byte(`{"n":` + n + `,"o":{"n": ` + n + ` }}`)})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range got.Values {
			if v.Kind != schema.Number || string(v.Raw) != n {
				t.Fatalf("sent %s, got %s of kind %d", n, v.Raw, v.Kind)
			}
		}
	})
}

// TestRowsMissingAndNull proves that partial messages of one entity can be told
// apart: a field that is not there says nothing, a null says to clear it.
func TestRowsMissingAndNull(t *testing.T) {
	tests := []struct {
		payload      string
		flavor, item schema.Kind
	}{
		{`{"id":1,"flavor":"chocolate"}`, schema.String, schema.Missing},
		{`{"id":1,"item":"cookie"}`, schema.Missing, schema.String},
		{`{"id":1,"flavor":null}`, schema.Null, schema.Missing},
	}
	for _, tt := range tests {
		got := mustRow(t, tt.payload, "flavor", "item")
		if got.Values[0].Kind != tt.flavor || got.Values[1].Kind != tt.item {
			t.Errorf("%s: got kinds %d and %d, want %d and %d", tt.payload, got.Values[0].Kind, got.Values[1].Kind, tt.flavor, tt.item)
		}
	}
}

// TestRowsOddNames proves that reserved words, upper case, spaces and quotes in
// names need no spelling of their own in a path.
func TestRowsOddNames(t *testing.T) {
	got := mustRow(t, `{"id":1,"randomText":"c","select":69,"user":"u1","a b":true,"x\"y":"q"}`,
		"randomText", "select", "user", "a b", `x"y`)
	want := []schema.Value{
		value(schema.String, "c"), value(schema.Number, "69"), value(schema.String, "u1"),
		value(schema.Bool, "true"), value(schema.String, "q"),
	}
	if diff := cmp.Diff(want, got.Values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRowsTombstone proves that a tombstone is a row of missing values, unlike a
// payload of no bytes, which TestRowsRefuses covers.
func TestRowsTombstone(t *testing.T) {
	fields := schema.NewFields("a", "b")
	got, err := schema.Rows(fields)(t.Context(), &schema.Record{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(make([]schema.Value, 2), got.Values); diff != "" || got.Fields != fields {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRowsMemory proves the cost: one allocation a row, for values lie in the
// record's own memory, and that none can be grown into its neighbour.
func TestRowsMemory(t *testing.T) {
	r := &schema.Record{Value: []byte(`{"a":1,"b":"x","c":{"d":true},"e":[1]}`)}
	decode := schema.Rows(schema.NewFields("a", "b", "c", "c.d", "e"))
	got, err := decode(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	first, last := uintptr(unsafe.Pointer(&r.Value[0])), uintptr(unsafe.Pointer(&r.Value[len(r.Value)-1]))
	for i, v := range got.Values {
		if at := uintptr(unsafe.Pointer(&v.Raw[0])); at < first || at > last {
			t.Errorf("field %d was copied", i)
		}
		if cap(v.Raw) != len(v.Raw) {
			t.Errorf("field %d has room for %d bytes more", i, cap(v.Raw)-len(v.Raw))
		}
	}
	if raceEnabled {
		return // the race detector empties pools at random
	}
	if n := testing.AllocsPerRun(200, func() { _, _ = decode(t.Context(), r) }); n > 1 {
		t.Errorf("%v allocations a row, want 1", n)
	}
}

// TestRowsConcurrent proves that one decoder serves several goroutines: no row
// sees another's payload. The race detector reads along.
func TestRowsConcurrent(t *testing.T) {
	decode := schema.Rows(schema.NewFields("a", "b.c"))
	var wg sync.WaitGroup
	for _, n := range []string{"1", "22", "333", "4444"} {
		wg.Go(func() {
			for range 300 {
				got, err := decode(t.Context(), &schema.Record{Value: []byte(`{"a":` + n + `,"\u0062":{"c":` + n + `}}`)})
				if err != nil || string(got.Values[0].Raw) != n || string(got.Values[1].Raw) != n {
					t.Errorf("sent %s, got %v and %v", n, got.Values, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
