package registry

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncestream/oncestream/schema"
)

func null() schema.Value              { return schema.Value{Kind: schema.Null} }
func text(raw []byte) schema.Value    { return schema.Value{Kind: schema.String, Raw: raw} }
func number(raw []byte) schema.Value  { return schema.Value{Kind: schema.Number, Raw: raw} }
func intValue(n int64) schema.Value   { return number(strconv.AppendInt(nil, n, 10)) }
func uintValue(n uint64) schema.Value { return number(strconv.AppendUint(nil, n, 10)) }
func boolValue(b bool) schema.Value {
	return schema.Value{Kind: schema.Bool, Raw: strconv.AppendBool(nil, b)}
}
func bytesValue(b []byte) schema.Value  { return schema.Value{Kind: schema.Bytes, Raw: b} }
func objectValue(b []byte) schema.Value { return schema.Value{Kind: schema.Object, Raw: b} }
func arrayValue(b []byte) schema.Value  { return schema.Value{Kind: schema.Array, Raw: b} }

// floatValue returns the shortest number that is the same float. NaN and the
// infinities, which are no numbers, are the texts that PostgreSQL has for them.
func floatValue(f float64, bits int) schema.Value {
	switch {
	case math.IsNaN(f):
		return text([]byte("NaN"))
	case math.IsInf(f, 1):
		return text([]byte("Infinity"))
	case math.IsInf(f, -1):
		return text([]byte("-Infinity"))
	}
	return number(strconv.AppendFloat(nil, f, 'g', -1, bits))
}

func textValue(s string) (schema.Value, error) {
	if err := checkText(s); err != nil {
		return schema.Value{}, err
	}
	return text([]byte(s)), nil
}

// checkText names the first byte that is no UTF-8.
func checkText(s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	for i, c := range s {
		if c != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
			return fmt.Errorf("text at byte %d: invalid UTF-8", i)
		}
	}
	return nil
}

// Layouts of time. The text of a local one has no offset, for it has no zone.
const (
	stampLayout = time.RFC3339Nano
	localLayout = "2006-01-02T15:04:05.999999999"
	clockLayout = "15:04:05.999999999"
)

// timeValue writes t. Years beyond four digits are written as ISO 8601 does,
// +12345 and -0044, for RFC 3339 cannot: the column decides about them.
func timeValue(t time.Time, layout string) schema.Value {
	var b []byte
	if t.Year() > 9999 {
		b = append(b, '+')
	}
	return text(t.UTC().AppendFormat(b, layout))
}

// appendJSON appends the JSON text of v; text is UTF-8. Bytes are base64.
func appendJSON(dst []byte, v schema.Value) []byte {
	switch v.Kind {
	case schema.Missing, schema.Null:
		return append(dst, "null"...)
	case schema.String:
		return appendQuoted(dst, v.Raw)
	case schema.Bytes:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Raw)
		return append(dst, '"')
	default:
		return append(dst, v.Raw...)
	}
}

// appendQuoted appends a JSON string of UTF-8 text.
func appendQuoted[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // fails for invalid UTF-8 only
	return dst
}

// appendName appends what precedes a member of an object: the comma, unless it
// is the first one, the name and the colon.
func appendName[T ~string | ~[]byte](dst []byte, name T) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(appendQuoted(dst, name), ':')
}

// appendComma appends a comma unless the element to come is the first one.
func appendComma(dst []byte) []byte {
	if dst[len(dst)-1] != '[' {
		dst = append(dst, ',')
	}
	return dst
}
