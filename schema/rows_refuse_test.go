package schema_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncestream/oncestream/schema"
)

// TestRowsRefuses proves that each way to be no strict JSON object is a decode
// fault that says where. Those inside names that nobody mapped count too.
func TestRowsRefuses(t *testing.T) {
	tests := []struct{ name, payload, want string }{
		{"name twice", `{"id":1,"amount":1,"amount":100}`, "byte 19 in /amount: duplicate"},
		{"key twice", `{"id":1,"id":2,"amount":5}`, "byte 8 in /id: duplicate"},
		{"unmapped name twice", `{"x":1,"x":1}`, "byte 7 in /x: duplicate"},
		{"twice by an escape", `{"id":1,"\u0069d":2}`, "byte 8 in /id: duplicate"},
		{"twice in an unmapped object", `{"x":{"y":1,"y":1}}`, "byte 12 in /x/y: duplicate"},
		{"twice in a mapped object", `{"o":{"y":1,"y":1}}`, "byte 12 in /o/y: duplicate"},
		{"name of NUL twice", `{"\u0000":1,"\u0000":1}`, `byte 12 in /\x00: duplicate`},
		{"latin-1", "{\"id\":1,\"name\":\"Ren\xe9\"}", "byte 19 in /name: invalid UTF-8"},
		{"broken pair", "{\"id\":2,\"name\":\"\xc3(\"}", "byte 16 in /name: invalid UTF-8"},
		{"cut character", "{\"id\":3,\"name\":\"\xf0\x9f\x98\"}", "byte 16 in /name: invalid UTF-8"},
		{"no UTF-8 in an unmapped name", "{\"\xff\":1}", "byte 2: invalid UTF-8"},
		{"lone surrogate", `{"name":"\ud800"}`, "byte 9 in /name: invalid surrogate"},
		{"not a number", `{"n":NaN}`, "byte 5 in /n: invalid character 'N'"},
		{"leading zero", `{"n":01}`, "byte 6"},
		{"data after", `{"id":1} {"id":2}`, "byte 9: data after"},
		{"brace too many", `{"id":1}}`, "byte 8: data after"},
		{"cut", `{"id":`, "byte 6 in /id: unexpected EOF"},
		{"trailing comma", `{"id":1,}`, "byte 7: invalid character ','"},
		{"name no string", `{1:1}`, "byte 1"},
		{"wrong bracket", `{"id":1]`, "byte 7"},
		{"no JSON", `not json`, "byte 1"},
		{"byte order mark", "\ufeff{}", "byte 0"},
		{"array", ` [1]`, "byte 1: the payload must be an object, it is an array"},
		{"text", `"x"`, "it is a string"},
		{"number", `1`, "it is a number"},
		{"true", `true`, "it is the text true"},
		{"null", `null`, "no tombstone"},
		{"empty", ``, "the payload is empty"},
		{"space", " \n", "the payload is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := row(t, tt.payload, "id", "name", "n", "o", "o.y")
			wantFault(t, err, schema.ReasonDecode, "t/0@7", tt.want)
		})
	}
}

// TestRowsCaseIsNoDuplicate proves that names that differ by case only are two.
func TestRowsCaseIsNoDuplicate(t *testing.T) {
	got := mustRow(t, `{"id":3,"amount":1,"Amount":100}`, "amount", "Amount")
	want := []schema.Value{value(schema.Number, "1"), value(schema.Number, "100")}
	if diff := cmp.Diff(want, got.Values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRowsDeepNesting proves that nesting, however deep, is a fault and neither
// a crash nor a decoder that is spoilt for the next record, and that its text
// stays short.
func TestRowsDeepNesting(t *testing.T) {
	decode := schema.Rows(schema.NewFields("a", "a.a", "id"))
	good := &schema.Record{Value: []byte(`{"id":1}`)}
	array := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, payload := range []string{
		array(20_000), array(200_000), `{"x":` + array(20_000) + `}`, `{"a":` + array(200_000) + `}`,
		strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000),
	} {
		_, err := decode(t.Context(), &schema.Record{Value: []byte(payload)})
		wantFault(t, err, schema.ReasonDecode, "max depth")
		if len(err.Error()) > 300 {
			t.Errorf("the text has %d bytes", len(err.Error()))
		}
		if _, err := decode(t.Context(), good); err != nil {
			t.Errorf("the record after: %v", err)
		}
	}
}
