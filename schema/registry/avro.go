package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/oncestream/oncestream/schema"
)

// Avro returns the decoder of framed Avro records into rows of the given fields.
// The record is read by the schema that it was written with; a field that this
// schema does not have is Missing, and defaults and aliases, which belong to a
// reader's schema, do not apply. A path's names lead into nested records and
// maps. A union is the value that it holds, null is Null.
//
//	boolean                  Bool
//	int, long                Number, every digit
//	float, double            Number, the shortest that is the same float; the
//	                         String NaN, Infinity or -Infinity
//	string, enum             String; invalid UTF-8 is a decode fault
//	bytes, fixed             Bytes
//	array, map, record       Array or Object, JSON text; names are sorted, bytes base64
//	decimal, big-decimal     Number with all digits of the schema's (or its own)
//	                         scale; no bytes at all are a decode fault
//	date                     String 2006-01-02
//	time-millis, -micros     String 15:04:05.999999; outside a day a decode fault
//	timestamp-*              String, RFC 3339 in UTC
//	local-timestamp-*        String, the same without an offset
//	duration                 String, ISO 8601 (P1Y2M3DT4H5M6.007S)
//	uuid                     String
//
// Years beyond 0000 to 9999 are written as ISO 8601 does, with a sign. A logical
// type that this list does not have is its Avro type. Data after the record and
// values nested beyond 1,000 levels are decode faults, too, mapped or not.
//
// A tombstone gives a row with all values Missing. An id that the registry does
// not know is a decode fault; a registry that does not answer is a
// [*schema.UnavailableError].
func (r *Registry) Avro(fields *schema.Fields) schema.Decoder[schema.Row] {
	return framed(r.avro, fields, fillAvro)
}

// Avro returns the decoder of Avro records without a frame that are all written
// with the given schema, by the rules of [Registry.Avro]. It is an error where
// the schema is none.
func Avro(schemaText string, fields *schema.Fields) (schema.Decoder[schema.Row], error) {
	s, err := avro.Parse(schemaText, avroOptions()...)
	if err != nil {
		return nil, fmt.Errorf("registry: avro schema: %w", err)
	}
	root := fields.Tree()
	return func(_ context.Context, r *schema.Record) (schema.Row, error) {
		row := newRow(fields)
		if r.Tombstone() {
			return row, nil
		}
		if err := fillAvro(s, r.Value, root, row.Values); err != nil {
			return schema.Row{}, schema.Faultf(r, schema.ReasonDecode, "%w", err)
		}
		return row, nil
	}, nil
}

// loadAvro asks for a schema and for those that it refers to.
func (r *Registry) loadAvro(ctx context.Context, id uint32) (*avro.Schema, error) {
	s, err := r.byID(ctx, id, sr.TypeAvro)
	if err != nil {
		return nil, err
	}
	references, err := r.references(ctx, s)
	if err != nil {
		return nil, err
	}
	var types avro.SchemaCache
	for _, ref := range references {
		if _, err := types.Parse(ref.text, avroOptions()...); err != nil {
			return nil, fmt.Errorf("reference %q: %w", ref.name, err)
		}
	}
	return types.Parse(s.Schema, avroOptions()...)
}

// fillAvro is the filler of Avro.
func fillAvro(s *avro.Schema, body []byte, root *schema.Tree, values []schema.Value) error {
	var v any
	rest, err := s.Decode(body, &v, avro.AliasInput())
	if err != nil {
		return plainly(err)
	}
	if len(rest) > 0 {
		return fmt.Errorf("avro: the record ends at byte %d of its body, and %d more follow", len(body)-len(rest), len(rest))
	}
	record, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("avro: a row needs a record, and the schema is of another type (%s)", s.Root().Type)
	}
	return placeMembers(root, record, values)
}

// plainly words the library's error by the field and what is wrong there; its
// own text tells of Go types, which are none of the sender's, and leaves the
// field out. The path of a nested field is cut short: it is as deep as the record.
func plainly(err error) error {
	const limit = 100
	e, ok := errors.AsType[*avro.SemanticError](err)
	switch {
	case !ok || e.Err == nil:
		return err
	case e.Field == "":
		return e.Err
	case len(e.Field) > limit:
		return fmt.Errorf("in %q…: %w", e.Field[:limit], e.Err)
	}
	return fmt.Errorf("in %q: %w", e.Field, e.Err)
}

// placeMembers sets the values of what is mapped in a record or map.
func placeMembers(n *schema.Tree, members map[string]any, values []schema.Value) error {
	for name, v := range members {
		if err := place(n.Kid(name), v, values); err != nil {
			if n == nil { // the name within what is not mapped would only lengthen the text
				return err
			}
			return fmt.Errorf("in %q: %w", name, err)
		}
	}
	return nil
}

// place sets the values of n from v, which it checks where n maps nothing.
func place(n *schema.Tree, v any, values []schema.Value) error {
	if members, ok := v.(map[string]any); ok {
		if err := placeMembers(n, members, values); err != nil {
			return err
		}
	} else if !n.Leaf() {
		return checkAvro(v)
	}
	if !n.Leaf() {
		return nil
	}
	value, err := avroValue(v)
	if err != nil {
		return err
	}
	n.Set(values, value)
	return nil
}

// checkAvro finds text that is none in what is not mapped.
func checkAvro(v any) error {
	switch v := v.(type) {
	case error:
		return v
	case string:
		return checkText(v)
	case []any:
		for _, element := range v {
			if err := place(nil, element, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// avroValue returns the value of what the library decodes into an any: the
// types of the switch, and what logical puts there: a value, or why there is none.
func avroValue(v any) (schema.Value, error) {
	switch v := v.(type) {
	case schema.Value:
		return v, nil
	case error:
		return schema.Value{}, v
	case bool:
		return boolValue(v), nil
	case int32:
		return intValue(int64(v)), nil
	case int64:
		return intValue(v), nil
	case float32:
		return floatValue(float64(v), 32), nil
	case float64:
		return floatValue(v, 64), nil
	case string:
		return textValue(v)
	case []byte:
		return bytesValue(v), nil
	case []any:
		doc, err := appendElements(nil, v)
		return arrayValue(doc), err
	case map[string]any:
		doc, err := appendMembers(nil, v)
		return objectValue(doc), err
	}
	return null(), nil
}

// appendAvro appends the JSON text of v.
func appendAvro(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case []any:
		return appendElements(dst, v)
	case map[string]any:
		return appendMembers(dst, v)
	}
	value, err := avroValue(v)
	return appendJSON(dst, value), err
}

func appendElements(dst []byte, elements []any) (_ []byte, err error) {
	dst = append(dst, '[')
	for _, v := range elements {
		if dst, err = appendAvro(appendComma(dst), v); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// appendMembers sorts the names: the text of a record must not differ from one
// decoding to the next.
func appendMembers(dst []byte, members map[string]any) (_ []byte, err error) {
	dst = append(dst, '{')
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if err = checkText(name); err != nil {
			return dst, fmt.Errorf("a name: %w", err)
		}
		if dst, err = appendAvro(appendName(dst, name), members[name]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}
