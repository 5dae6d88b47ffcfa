package main

import (
	"testing"

	"github.com/oncestream/oncestream/schema"
)

// Payloads that mean the same in the fields have one sum, whatever the other
// fields say; any difference in the fields makes another one.
func TestFingerprintOfFields(t *testing.T) {
	f := fingerprint{fields: []string{"a", "b.c", "$header.h"}}
	decode := schema.Rows(schema.NewFields(f.paths()...))
	sum := f.sum()
	of := func(header, value string) int64 {
		t.Helper()
		r := &schema.Record{Value: []byte(value), Headers: []schema.Header{{Key: "h", Value: []byte(header)}}}
		row, err := decode(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return sum(schema.Message[schema.Row]{Record: r, Body: row})
	}
	first := of("x", `{"a":1.50,"b":{"c":{"m":1.0,"n":"é"}},"sent":1}`)
	for _, same := range []string{
		`{"a":1.5,"b":{"c":{"m":1.0,"n":"é"}},"sent":2}`,
		`{"a":15e-1,"b":{"c":{"n":"\u00e9", "m":1.0}}}`,
		`{"b":{"c":{"m":1.0,"n":"é"},"d":1},"a":1.500}`,
	} {
		if of("x", same) != first {
			t.Errorf("%s counts as another message", same)
		}
	}
	for _, other := range []string{
		`{"a":1.51,"b":{"c":{"m":1.0,"n":"é"}}}`,
		`{"a":"1.50","b":{"c":{"m":1.0,"n":"é"}}}`,
		`{"a":1.50,"b":{"c":{"m":1.0,"n":"e"}}}`,
		`{"a":1.50,"b":{"c":null}}`,
		`{"a":1.50,"b":{}}`,
	} {
		if of("x", other) == first {
			t.Errorf("%s counts as the same message", other)
		}
	}
	if of("y", `{"a":1.50,"b":{"c":{"m":1.0,"n":"é"}},"sent":1}`) == first {
		t.Error("another header counts as the same message")
	}
	if tombstone := sum(schema.Message[schema.Row]{Record: &schema.Record{}}); tombstone == of("x", "{}") {
		t.Error("a tombstone counts as an empty object")
	}
}

// Equal numbers are one text and different ones are not, also where a float
// could not tell them apart.
func TestCanonicalNumber(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "0e9": "0", "100": "100", "1e2": "100", "100.0": "100", "-1.50": "-1.5E+0", "-15E-1": "-1.5E+0",
		"9007199254740993": "9007199254740993", "9007199254740993.0": "9007199254740993", "1e999999999": "1e999999999",
	} {
		if got := string(canonicalNumber([]byte(in))); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}
