package main

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/apd/v3"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml/ast"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/sinks"
)

// fingerprint says what makes two messages of one key the same message: the
// kinds value and none, or fields.
type fingerprint struct {
	kind   string
	fields []string
}

// fingerprint reads one of the kinds, or a mapping with fields.
func (r *reader) fingerprint(at string, node ast.Node, f field, to *fingerprint) {
	if _, ok := pairsOf(node); !ok {
		r.scalar(at, node, f)
		return
	}
	inside := []field{{path: "fields", value: &to.fields, required: true}}
	r.mapping(at, "", node, inside)
	r.finish(at, inside)
	for i, path := range to.fields {
		if slices.Contains([]string{"$partition", "$offset", "$time"}, path) {
			r.failAt(join(at, "fields"), "fields[%d] is %s, which differs for each copy of a message", i, path)
		}
	}
}

// paths are the fields of the body that it needs.
func (f *fingerprint) paths() []string { return sinks.Paths(f.columns()...) }

func (f *fingerprint) columns() []sinks.Column[schema.Row] {
	columns := make([]sinks.Column[schema.Row], len(f.fields))
	for i, path := range f.fields {
		columns[i] = sinks.Field(path, path)
	}
	return columns
}

// sum returns what the engine compares, nil for its own sum of the payload.
func (f *fingerprint) sum() func(schema.Message[schema.Row]) int64 {
	switch {
	case f.kind == "none":
		return func(schema.Message[schema.Row]) int64 { return 0 }
	case len(f.fields) == 0:
		return nil
	}
	columns := f.columns()
	return func(m schema.Message[schema.Row]) int64 {
		if m.Tombstone() {
			return 0 // differs from an object in which all fields are missing
		}
		var text []byte
		for i := range columns {
			// A field that the decoder maps is never an error.
			v, _ := columns[i].Value(&m)
			text = appendField(text, v)
		}
		return int64(xxhash.Sum64(text))
	}
}

// appendField appends a value by its kind, its length and its text, so that no
// two lists of values have one text. The ledger keeps sums of it: the form must
// stay as it is.
func appendField(dst []byte, v schema.Value) []byte {
	text := canonicalText(v)
	dst = append(dst, byte(v.Kind))
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// canonicalText is the same for values that mean the same.
func canonicalText(v schema.Value) []byte {
	switch v.Kind { //nolint:exhaustive // the others are their own text
	case schema.Number:
		return canonicalNumber(v.Raw)
	case schema.Object, schema.Array:
		doc := jsontext.Value(slices.Clone(v.Raw))
		// The decoder has found it valid. Numbers in it keep every digit.
		if doc.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) == nil {
			return doc
		}
	}
	return v.Raw
}

// canonicalNumber writes 1.50, 1.5 and 15e-1 alike.
func canonicalNumber(raw []byte) []byte {
	if !strings.ContainsAny(string(raw), "-.eE") {
		return raw
	}
	d, _, err := apd.NewFromString(string(raw))
	switch {
	case err != nil: // an exponent beyond what a decimal can have
		return raw
	case d.IsZero():
		return []byte("0")
	}
	d.Reduce(d)
	if d.Exponent >= 0 && d.Exponent < 32 {
		return []byte(d.Text('f')) // as a whole number is sent
	}
	return []byte(d.Text('E'))
}
