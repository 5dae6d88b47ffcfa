package sinks

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncestream/oncestream/schema"
)

// Column says where the value of one column comes from. Make it with [Field],
// [Col], [Computed] or [Constant], or fill it in.
type Column[T any] struct {
	// Name is the column of the table, as it is; it is never folded.
	Name string
	// Field names the source in errors: the path of a field in the body, or the
	// expression.
	Field string
	// Uses are the paths of the fields that Value reads. Defaults to Field.
	Uses []string
	// OfRecord says that Value reads the record only and not the body, so that
	// it has an answer for a tombstone too. Defaults to false.
	OfRecord bool
	// Value returns the value of message m, which it must not keep or change.
	// A Missing value leaves the column out, a Null one is null. An error is
	// the message's own fault only if it is a [*schema.Fault].
	Value func(m *schema.Message[T]) (schema.Value, error)
}

// Field takes a column from a field of a row by its path, or from the record by
// one of the pseudo-fields:
//
//	$key          the record key: bytes, read as text where the column is not bytea; null if there is none
//	$topic        the topic's name
//	$partition    the number of the partition
//	$offset       the record's offset
//	$time         the record's timestamp, RFC 3339 in UTC
//	$header.NAME  the last header of that name: bytes, as the key; missing if there is none
//
// A pseudo-field hides a field of the body that has the same path. A path that
// the decoder does not map is an error of the configuration, not a missing field.
func Field(column, path string) Column[schema.Row] {
	if value := pseudoField(path); value != nil {
		return Column[schema.Row]{
			Name: column, Field: path, OfRecord: true,
			Value: func(m *schema.Message[schema.Row]) (schema.Value, error) { return value(m.Record), nil },
		}
	}
	place := &fieldPlace{path: path}
	return Column[schema.Row]{
		Name: column, Field: path,
		Value: func(m *schema.Message[schema.Row]) (schema.Value, error) { return place.get(m.Body) },
	}
}

// Col takes a column from a body that is a Go type. What from returns is turned
// into a value by [schema.ValueOf]; a [schema.Value] is taken as it is, so that
// its zero says the column is left out.
func Col[T any](column string, from func(m schema.Message[T]) any) Column[T] {
	return Column[T]{
		Name: column, Field: column,
		Value: func(m *schema.Message[T]) (schema.Value, error) {
			v := from(*m)
			if value, ok := v.(schema.Value); ok {
				return value, nil
			}
			value, err := schema.ValueOf(v)
			if err != nil {
				return value, schema.Faultf(nil, schema.ReasonValueType, "%w", err)
			}
			return value, nil
		},
	}
}

// Const gives each message the same whole number, such as 1 to count messages
// with a [Sum].
func Const[T any](column string, n int64) Column[T] {
	return Constant[T](column, numberValue(n))
}

// Constant gives each message the same value: a text, a number with its digits,
// true or false, JSON, or null.
func Constant[T any](column string, value schema.Value) Column[T] {
	return Column[T]{
		Name: column, Field: string(value.Raw), OfRecord: true,
		Value: func(*schema.Message[T]) (schema.Value, error) { return value, nil },
	}
}

// Paths returns the paths of the fields that the columns take from the body,
// for the decoder's [schema.NewFields]. Pseudo-fields and constants have none.
func Paths(columns ...Column[schema.Row]) []string {
	var paths []string
	for _, c := range columns {
		switch {
		case c.OfRecord:
		case c.Uses != nil:
			paths = append(paths, c.Uses...)
		default:
			paths = append(paths, c.Field)
		}
	}
	return paths
}

// fieldPlace remembers where a path lies in the rows of one decoder, so that no
// row costs a look-up by name.
type fieldPlace struct {
	path string
	last atomic.Pointer[fieldIndex]
}

type fieldIndex struct {
	fields *schema.Fields
	index  int
}

func (p *fieldPlace) get(row schema.Row) (schema.Value, error) {
	if row.Fields == nil {
		return schema.Value{}, nil
	}
	at := p.last.Load()
	if at == nil || at.fields != row.Fields {
		at = &fieldIndex{row.Fields, row.Fields.Index(p.path)}
		if at.index < 0 {
			return schema.Value{}, fmt.Errorf("the decoder maps no field %q%s", p.path, meant(p.path, row.Fields.Paths()))
		}
		p.last.Store(at)
	}
	if at.index >= len(row.Values) {
		return schema.Value{}, nil
	}
	return row.Values[at.index], nil
}

// pseudoField returns nil for a path that is no pseudo-field.
func pseudoField(path string) func(*schema.Record) schema.Value {
	if name, ok := strings.CutPrefix(path, "$header."); ok {
		return func(r *schema.Record) schema.Value {
			v, there := r.Header(name)
			if !there {
				return schema.Value{}
			}
			return bytesValue(v)
		}
	}
	switch path {
	case "$key":
		return func(r *schema.Record) schema.Value { return bytesValue(r.Key) }
	case "$topic":
		return func(r *schema.Record) schema.Value { return textValue([]byte(r.Topic)) }
	case "$partition":
		return func(r *schema.Record) schema.Value { return numberValue(int64(r.Partition)) }
	case "$offset":
		return func(r *schema.Record) schema.Value { return numberValue(r.Offset) }
	case "$time":
		return func(r *schema.Record) schema.Value {
			return textValue(r.Time.UTC().AppendFormat(nil, time.RFC3339Nano))
		}
	}
	return nil
}

func bytesValue(b []byte) schema.Value {
	if b == nil {
		return schema.Value{Kind: schema.Null}
	}
	return schema.Value{Kind: schema.Bytes, Raw: b}
}

func textValue(b []byte) schema.Value { return schema.Value{Kind: schema.String, Raw: b} }

func numberValue(n int64) schema.Value {
	return schema.Value{Kind: schema.Number, Raw: strconv.AppendInt(nil, n, 10)}
}
