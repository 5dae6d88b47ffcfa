package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/schema"
)

type order struct {
	ID    int64  `json:"id"`
	Name  string `json:"name"`
	Inner struct {
		Small int8 `json:"small"`
	} `json:"inner"`
}

// TestJSON proves that a payload becomes its Go type and unknown names are
// passed over.
func TestJSON(t *testing.T) {
	r := &schema.Record{Value: []byte(`{"id":9007199254740993,"name":"é","more":[1]}`)}
	got, err := schema.JSON[order]()(t.Context(), r)
	if err != nil || got.ID != 9007199254740993 || got.Name != "é" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestJSONRefuses proves that what is not strict JSON of the type is a fault
// with its place, and that nothing half decoded comes back.
func TestJSONRefuses(t *testing.T) {
	tests := []struct {
		name, payload, want string
	}{
		{"wrong type", `{"id":"x"}`, "byte 6 in /id: a string does not fit Go type int64"},
		{"out of range", `{"id":1,"inner":{"small":300}}`, "byte 25 in /inner/small: a number does not fit Go type int8"},
		{"fraction", `{"id":1.5}`, "byte 6 in /id"},
		{"name twice", `{"id":1,"id":2}`, "byte 8 in /id: duplicate"},
		{"unknown name twice", `{"x":1,"x":2}`, "byte 7 in /x: duplicate"},
		{"invalid UTF-8", "{\"id\":1,\"name\":\"\xc3(\"}", "byte 16 in /name: invalid UTF-8"},
		{"data after", `{"id":1} x`, "byte 9"},
		{"too deep", `{"x":` + strings.Repeat("[", 20_000), "max depth"},
		{"null", " null\n", "no tombstone"},
		{"empty", "", "the payload is empty"},
		{"space", " ", "the payload is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := schema.JSON[order]()(t.Context(), &schema.Record{Topic: "t", Value: []byte(tt.payload)})
			wantFault(t, err, schema.ReasonDecode, tt.want)
			if got != (order{}) {
				t.Errorf("got %+v beside the error", got)
			}
		})
	}
}

// TestFaultPlaceIsPrintable proves that the sender's names cannot put a NUL or a
// cut character into the text of a fault, which goes into a text column.
func TestFaultPlaceIsPrintable(t *testing.T) {
	for _, name := range []string{`a\u0000b`, strings.Repeat("é", 80), "x" + strings.Repeat("é", 80)} {
		_, err := row(t, `{"`+name+`":{"y":NaN}}`, "id")
		wantFault(t, err, schema.ReasonDecode)
		if text := err.Error(); strings.ContainsAny(text, "\x00\ufffd") || strings.ToValidUTF8(text, "") != text {
			t.Errorf("got text %q", text)
		}
	}
}

// TestText proves that text is UTF-8 or a fault, and empty text is no tombstone.
func TestText(t *testing.T) {
	decode := schema.Text()
	for _, text := range []string{"", "null", "René \x00"} {
		got, err := decode(t.Context(), &schema.Record{Value: []byte(text)})
		if err != nil || got != text {
			t.Errorf("got %q, %v, want %q", got, err, text)
		}
	}
	_, err := decode(t.Context(), &schema.Record{Value: []byte("Ren\xe9")})
	wantFault(t, err, schema.ReasonDecode, "text at byte 3: invalid UTF-8")
}

// TestRaw proves that bytes pass as they are and that only a tombstone is nil.
func TestRaw(t *testing.T) {
	decode := schema.Raw()
	for _, payload := range [][]byte{nil, {}, {0xff, 0}} {
		got, err := decode(t.Context(), &schema.Record{Value: payload})
		if err != nil || string(got) != string(payload) || (got == nil) != (payload == nil) {
			t.Errorf("got %v, %v, want %v", got, err, payload)
		}
	}
}

// TestTombstoneRefused proves that the decoders whose type has no word for a
// tombstone say so with its own reason.
func TestTombstoneRefused(t *testing.T) {
	r := &schema.Record{Topic: "t", Partition: 1, Offset: 2}
	_, errJSON := schema.JSON[order]()(t.Context(), r)
	_, errText := schema.Text()(t.Context(), r)
	for _, err := range []error{errJSON, errText} {
		wantFault(t, err, schema.ReasonTombstone, "t/1@2")
	}
}

// TestPayloadSum proves that the sum is xxhash64 with seed 0, by the vectors
// of its specification, and tells payloads, the empty one and a tombstone apart.
func TestPayloadSum(t *testing.T) {
	empty, abc := uint64(0xef46db3751d8e999), uint64(0x44bc2cf5ad770999)
	for _, tt := range []struct {
		payload []byte
		want    int64
	}{
		{nil, 0}, {[]byte{}, int64(empty)}, {[]byte("abc"), int64(abc)},
	} {
		if got := schema.PayloadSum(&schema.Record{Value: tt.payload}); got != tt.want {
			t.Errorf("%q: got %d, want %d", tt.payload, got, tt.want)
		}
	}
}

// TestAsFault proves that a fault keeps its reason and gains the record, that
// other errors take the given reason, and that the shared fault is not changed.
func TestAsFault(t *testing.T) {
	r := &schema.Record{Topic: "t", Offset: 3}
	plain := errors.New("no luck")
	if f := schema.AsFault(plain, r, schema.ReasonHandler); f.Reason != schema.ReasonHandler || !errors.Is(f, plain) {
		t.Errorf("got %v", f)
	}
	shared := &schema.Fault{Reason: schema.ReasonCheck, Field: "a", Column: "b", Err: plain}
	f := schema.AsFault(shared, r, schema.ReasonHandler)
	if got, want := f.Error(), "t/0@3: check: field a: column b: no luck"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if shared.Record != nil || !f.Permanent() {
		t.Errorf("the shared fault was changed: %v", shared)
	}
}
