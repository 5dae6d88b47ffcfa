package schema

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// JSON returns the decoder of JSON payloads into T by the rules of
// encoding/json/v2: names are compared exactly, a name that occurs twice and
// invalid UTF-8 are errors, unknown names are passed over. A value that does not
// fit its Go type is a decode fault that names the byte and the place.
//
// A tombstone is a fault with [ReasonTombstone]. The JSON text null and a payload
// of no bytes are decode faults, whatever T is: they would otherwise give a zero
// T that nobody sent.
func JSON[T any]() Decoder[T] {
	return func(_ context.Context, r *Record) (T, error) {
		var body, zero T
		if r.Tombstone() {
			return zero, tombstoneFault(r)
		}
		if err := unmarshal(r.Value, &body); err != nil {
			return zero, jsonFault(r, err)
		}
		return body, nil
	}
}

// unmarshal decodes doc into body, a pointer.
func unmarshal(doc []byte, body any) error {
	switch string(bytes.Trim(doc, jsonSpace)) {
	case "":
		return errEmpty
	case "null":
		return errNullText
	}
	return json.Unmarshal(doc, body)
}

// jsonSpace is the white space of RFC 8259, section 2.
const jsonSpace = " \t\r\n"

// Text returns the decoder of payloads that are UTF-8 text; other bytes are a
// decode fault that names the first of them. An empty payload is the empty text.
// A tombstone is a fault with [ReasonTombstone].
func Text() Decoder[string] {
	return func(_ context.Context, r *Record) (string, error) {
		if r.Tombstone() {
			return "", tombstoneFault(r)
		}
		if i := invalidUTF8(r.Value); i >= 0 {
			return "", Faultf(r, ReasonDecode, "text at byte %d: invalid UTF-8", i)
		}
		return string(r.Value), nil
	}
}

// Raw returns the decoder that hands on the payload as it is, in the record's
// own memory. The body of a tombstone is nil, that of an empty payload is not.
func Raw() Decoder[[]byte] {
	return func(_ context.Context, r *Record) ([]byte, error) { return r.Value, nil }
}

// invalidUTF8 returns the index of the first byte of b that is no UTF-8, or -1.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; ; {
		c, size := utf8.DecodeRune(b[i:])
		if c == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
}

func tombstoneFault(r *Record) *Fault {
	return Faultf(r, ReasonTombstone, "the record has no value; this decoder needs one")
}

// jsonFault returns the fault of r for err, with the byte at which the payload
// went wrong. The library's own texts leave the byte out in places.
func jsonFault(r *Record, err error) *Fault {
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return Faultf(r, ReasonDecode, "json at byte %d%s: %w", bad.ByteOffset, within(bad.JSONPointer), bad.Err)
	}
	if bad, ok := errors.AsType[*json.SemanticError](err); ok {
		return Faultf(r, ReasonDecode, "json at byte %d%s: %s", bad.ByteOffset, within(bad.JSONPointer), misfit(bad))
	}
	return Faultf(r, ReasonDecode, "%w", err)
}

// misfit says what the Go type and the JSON value of a semantic error are.
func misfit(e *json.SemanticError) string {
	text := fmt.Sprintf("%s does not fit Go type %v", kindName(e.JSONKind), e.GoType)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// within returns " in /a/b" for the place of a fault. It is cut short, for in
// deep nesting it is as long as the payload, and escaped, for names are the
// sender's and a fault's text must fit a log line and a text column.
func within(p jsontext.Pointer) string {
	const limit = 100
	if p == "" {
		return ""
	}
	end, more := len(p), ""
	if end > limit {
		end, more = limit, "…"
	}
	return " in " + string(appendReadable(nil, []byte(p[:end]), false)) + more
}
