package schema_test

import (
	"bytes"
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/oncestream/oncestream/schema"
)

// fuzzPaths are the fields of FuzzRows: whole and inside, escaped, empty.
var fuzzPaths = []string{"a", "a.b", "a.b.c", "b", `d\.e`, ""}

// FuzzRows holds Rows against encoding/json: it takes exactly the objects that
// are valid JSON and valid UTF-8 with each name once, and its values are the same.
func FuzzRows(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":{"b":{"c":1.50}},"b":[1,{"x":null}]}`, `{"d.e":"\u00e9\n","":true}`, `{"a":1,"a":2}`,
		`{"a":{"b":1,"\u0062":2}}`, `{"x":[{"y":1,"y":1}]}`, `{"a":"\ud800"}`, "{\"b\":\"\xff\"}", ` { "b" : -0e+1 } `,
		`null`, `[1]`, `{"a":1}x`, `{"b":NaN}`, `{"a":[[[[[[[[]]]]]]]]}`, ``, `{"b":"\ufffd"}`, `{"b":"�"}`,
	} {
		f.Add([]byte(seed))
	}
	decode := schema.Rows(schema.NewFields(fuzzPaths...))
	f.Fuzz(func(t *testing.T, doc []byte) {
		if doc == nil {
			doc = []byte{}
		}
		sent := bytes.Clone(doc)
		got, err := decode(t.Context(), &schema.Record{Value: doc})
		if !bytes.Equal(sent, doc) {
			t.Fatal("the payload was changed")
		}
		valid := isStrictObject(doc)
		switch {
		case err == nil && !valid:
			t.Fatalf("took %q", doc)
		case err != nil && valid && !replaced(doc):
			t.Fatalf("refused %q: %v", doc, err)
		case err == nil:
			sameValues(t, doc, got)
		}
	})
}

// isStrictObject is the oracle: slow, and by another library.
func isStrictObject(doc []byte) bool {
	var object map[string]any
	return utf8.Valid(doc) && stdjson.Valid(doc) && stdjson.Unmarshal(doc, &object) == nil &&
		object != nil && !namesRepeat(stdjson.NewDecoder(bytes.NewReader(doc)))
}

// namesRepeat reports whether a name occurs twice in the value that d reads.
func namesRepeat(d *stdjson.Decoder) bool {
	type level struct {
		names map[string]bool // nil in an array
		value bool            // a value comes next, not a name
	}
	stack := []*level{{}}
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return false // the end: the text was found valid before
		}
		top := stack[len(stack)-1]
		if token == stdjson.Delim('}') || token == stdjson.Delim(']') {
			stack = stack[:len(stack)-1]
			continue
		}
		if top.names != nil && !top.value {
			if top.names[token.(string)] {
				return true
			}
			top.names[token.(string)], top.value = true, true
			continue
		}
		top.value = false
		switch token {
		case stdjson.Delim('{'):
			stack = append(stack, &level{names: map[string]bool{}})
		case stdjson.Delim('['):
			stack = append(stack, &level{})
		}
	}
}

// replaced reports whether encoding/json may have put U+FFFD for a surrogate that
// stands alone, which Rows refuses.
func replaced(doc []byte) bool {
	return strings.Contains(strings.ToLower(string(doc)), `\ud`)
}

// sameValues holds each value of the row to what encoding/json finds.
func sameValues(t *testing.T, doc []byte, got schema.Row) {
	t.Helper()
	object := parse(t, doc).(map[string]any)
	for _, path := range fuzzPaths {
		want, ok := find(object, schema.SplitPath(path))
		v := got.Get(path)
		if ok != (v.Kind != schema.Missing) {
			t.Fatalf("%q: %s: got kind %d, found %v", doc, path, v.Kind, ok)
		}
		if ok && !sameValue(t, v, want) {
			t.Fatalf("%q: %s: got %d %q, want %v", doc, path, v.Kind, v.Raw, want)
		}
	}
}

func sameValue(t *testing.T, v schema.Value, want any) bool {
	t.Helper()
	switch want := want.(type) {
	case nil:
		return v.Kind == schema.Null
	case string:
		return v.Kind == schema.String && string(v.Raw) == want
	case stdjson.Number:
		return v.Kind == schema.Number && string(v.Raw) == want.String()
	case bool:
		return v.Kind == schema.Bool && (string(v.Raw) == "true") == want
	case map[string]any:
		return v.Kind == schema.Object && reflect.DeepEqual(parse(t, v.Raw), want)
	default:
		return v.Kind == schema.Array && reflect.DeepEqual(parse(t, v.Raw), want)
	}
}

func find(in any, names []string) (any, bool) {
	for _, name := range names {
		object, ok := in.(map[string]any)
		if !ok {
			return nil, false
		}
		if in, ok = object[name]; !ok {
			return nil, false
		}
	}
	return in, true
}

func parse(t *testing.T, doc []byte) any {
	t.Helper()
	d := stdjson.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	return v
}

// FuzzKey holds keys of two parts to what a key is for: the same where the parts
// are the same and only there, with a text that fits a log line, a header and a
// text column.
func FuzzKey(f *testing.F) {
	f.Add([]byte("a|b"), []byte("c"), []byte("a"), []byte("b|c"))
	f.Add([]byte(`a\`), []byte("c"), []byte("a"), []byte(`\c`))
	f.Add([]byte("\xff"), []byte(`\xff`), []byte(`\xff`), []byte("\xff"))
	f.Add([]byte("\x00"), []byte("\n"), []byte(""), []byte("\u0085"))
	f.Fuzz(func(t *testing.T, a, b, c, d []byte) {
		one, two := schema.NewKey(a, b), schema.NewKey(c, d)
		same := bytes.Equal(a, c) && bytes.Equal(b, d)
		if (one.ID == two.ID) != same || (one.Text == two.Text) != same {
			t.Fatalf("(%q,%q) is %v, (%q,%q) is %v", a, b, one, c, d, two)
		}
		if schema.NewKey(a).ID == one.ID {
			t.Fatalf("(%q) and (%q,%q) share a key", a, a, b)
		}
		if !utf8.ValidString(one.Text) || strings.ContainsFunc(one.Text, unicode.IsControl) {
			t.Fatalf("(%q,%q) reads %q", a, b, one.Text)
		}
	})
}
