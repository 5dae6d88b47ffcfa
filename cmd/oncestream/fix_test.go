package main

import (
	"strings"
	"testing"
)

// A fix sets the one field that it names, be it there or not, and leaves every
// other byte as it was.
func TestFix(t *testing.T) {
	for _, test := range []struct{ payload, fix, want string }{
		{`{"a": 1.00, "b":2}`, `b=3`, `{"a": 1.00, "b":3}`},
		{`{"a": 1.00, "b":2}`, `a="7"`, `{"a": "7", "b":2}`},
		{`{"a":1}`, `a=Ada L.`, `{"a":"Ada L."}`},
		{`{"a":1}`, `a=`, `{"a":""}`},
		{`{"a":1}`, `a=null`, `{"a":null}`},
		{`{"a":1}`, `a={"x":[1,2]}`, `{"a":{"x":[1,2]}}`},
		{`{"a":1}`, `a=x=y`, `{"a":"x=y"}`},
		{` {} `, `a=1`, ` {"a":1} `},
		{`{"x":12345678901234567890.10}`, `a.b=1`, `{"x":12345678901234567890.10,"a":{"b":1}}`},
		{`{"a":{"b":1,"c":2},"b":3}`, `a.b=9`, `{"a":{"b":9,"c":2},"b":3}`},
		{`{"a":{"b":1}}`, `a.c=9`, `{"a":{"b":1,"c":9}}`},
		{`{"a.b":1,"a":{"b":2}}`, `a\.b=9`, `{"a.b":9,"a":{"b":2}}`},
		{`{"\u0061":1}`, `a=2`, `{"\u0061":2}`},
	} {
		f, err := parseFixes([]string{test.fix})
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.apply([]byte(test.payload))
		if err != nil || string(got) != test.want {
			t.Errorf("%s with %s becomes %s (%v), want %s", test.payload, test.fix, got, err, test.want)
		}
	}
}

// Fixes are made one after another; what cannot be fixed is said, with the field.
func TestFixFaults(t *testing.T) {
	f, err := parseFixes([]string{"a.b=1", "a.c=2"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.apply([]byte(`{"a":{}}`)); string(got) != `{"a":{"b":1,"c":2}}` {
		t.Errorf("two fixes make %s (%v)", got, err)
	}
	for payload, want := range map[string]string{
		`{"a":1}`:    "set a.b: b has a place in an object only",
		`{"a":[]}`:   "set a.b: b has a place in an object only",
		`[]`:         "no JSON object",
		`plain`:      "no JSON object",
		`{"a":1,"a"`: "no JSON object",
		`{"x":1}{}`:  "no JSON object",
		"":           "no JSON object",
	} {
		if got, err := f.apply([]byte(payload)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s becomes %s (%v), want the fault %q", payload, got, err, want)
		}
	}
	if _, err := f.apply(nil); err == nil {
		t.Error("a tombstone was fixed")
	}
	for _, text := range []string{"a", "=1", "a=\xff"} {
		if _, err := parseFixes([]string{text}); err == nil || !isUsage(err) {
			t.Errorf("--fix %q is taken (%v)", text, err)
		}
	}
}
