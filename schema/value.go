package schema

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/cockroachdb/apd/v3"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// ValueOf returns the Value of a Go value, for pipelines whose body is a Go type:
//
//	nil, nil pointers and slices     Null
//	string                           String; it must be UTF-8
//	[]byte                           Bytes
//	bool                             Bool
//	integers                         Number
//	floats                           Number, the shortest text that is the same float
//	apd.Decimal                      Number, with every digit
//	time.Time                        String, RFC 3339 with its nanoseconds and zone
//	uuid.UUID                        String, the canonical text
//	json.RawMessage, jsontext.Value  what the JSON text is
//
// Types derived from these basic types, and pointers to all of them, are taken
// alike. NaN and the infinities are errors, for they are no JSON numbers; so is
// a time.Duration, for it has no unit, and every other type. Memory of a []byte
// or of JSON text is shared. ValueOf never answers Missing; the zero Value does.
func ValueOf(v any) (Value, error) {
	switch v := v.(type) {
	case nil:
		return Value{Kind: Null}, nil
	case string:
		return textValue(v)
	case time.Time:
		return timeValue(v)
	case uuid.UUID:
		return Value{Kind: String, Raw: []byte(v.String())}, nil
	case apd.Decimal:
		return decimalValue(&v)
	case *apd.Decimal:
		return decimalValue(v)
	case stdjson.RawMessage:
		return rawValue(v)
	case time.Duration:
		return Value{}, errors.New("schema: a time.Duration has no unit: give its number or its text")
	}
	// Not a case above: under GOEXPERIMENT=jsonv2 it is the same type as
	// json.RawMessage, and two such cases do not compile.
	if raw, ok := v.(jsontext.Value); ok {
		return rawValue(raw)
	}
	return basicValue(reflect.ValueOf(v))
}

// basicValue is ValueOf by the kind of the type.
func basicValue(v reflect.Value) (Value, error) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return Value{Kind: Null}, nil
		}
		return ValueOf(v.Elem().Interface())
	case reflect.String:
		return textValue(v.String())
	case reflect.Bool:
		return Value{Kind: Bool, Raw: strconv.AppendBool(nil, v.Bool())}, nil
	case reflect.Float32:
		return floatValue(v.Float(), 32)
	case reflect.Float64:
		return floatValue(v.Float(), 64)
	case reflect.Slice:
		return sliceValue(v)
	default:
		return intValue(v)
	}
}

// intValue takes what is left: the integers, and the types that have no Value.
func intValue(v reflect.Value) (Value, error) {
	switch {
	case v.CanInt():
		return Value{Kind: Number, Raw: strconv.AppendInt(nil, v.Int(), 10)}, nil
	case v.CanUint():
		return Value{Kind: Number, Raw: strconv.AppendUint(nil, v.Uint(), 10)}, nil
	default:
		return Value{}, noValue(v)
	}
}

func sliceValue(v reflect.Value) (Value, error) {
	switch {
	case v.Type().Elem().Kind() != reflect.Uint8:
		return Value{}, noValue(v)
	case v.IsNil():
		return Value{Kind: Null}, nil
	default:
		return Value{Kind: Bytes, Raw: v.Bytes()}, nil
	}
}

func noValue(v reflect.Value) error {
	return fmt.Errorf("schema: no value from Go type %v: give it as json.RawMessage, or one of its fields", v.Type())
}

func textValue(s string) (Value, error) {
	b := []byte(s)
	if i := invalidUTF8(b); i >= 0 {
		return Value{}, fmt.Errorf("schema: text at byte %d: invalid UTF-8; bytes are given as []byte", i)
	}
	return Value{Kind: String, Raw: b}, nil
}

func floatValue(f float64, bits int) (Value, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Value{}, fmt.Errorf("schema: the float %v is no number", f)
	}
	return Value{Kind: Number, Raw: strconv.AppendFloat(nil, f, 'g', -1, bits)}, nil
}

func decimalValue(d *apd.Decimal) (Value, error) {
	switch {
	case d == nil:
		return Value{Kind: Null}, nil
	case d.Form != apd.Finite:
		return Value{}, fmt.Errorf("schema: the decimal %v is no number", d)
	}
	return Value{Kind: Number, Raw: d.Append(nil, 'G')}, nil
}

// timeValue refuses the years that RFC 3339 cannot write.
func timeValue(t time.Time) (Value, error) {
	b, err := t.AppendText(nil)
	if err != nil {
		return Value{}, fmt.Errorf("schema: time: %w", err)
	}
	return Value{Kind: String, Raw: b}, nil
}

// rawValue checks the text as strictly as [Rows] does.
func rawValue(doc []byte) (Value, error) {
	if doc == nil {
		return Value{Kind: Null}, nil
	}
	raw := jsontext.Value(doc)
	if !raw.IsValid() {
		return Value{}, errors.New("schema: a json.RawMessage that is no strict JSON (duplicate names and invalid UTF-8 count)")
	}
	raw = bytes.Trim(raw, jsonSpace)
	return jsonValue(slices.Clip(raw)), nil
}
