package schema

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// KeyPart reads one text of an idempotency key out of a message. Parts are what
// [Join] and [AsUUID] take, so that a key is always made of the parts' own bytes
// and never of another key's hash. The zero KeyPart is not usable.
type KeyPart[T any] struct {
	source string // what a fault calls it: "field id", "header ce_id"
	field  string // the path, where the part is a field
	// read returns the part's value. A value of kind Bytes may be a UUID's 16
	// bytes, any other kind is text.
	read func(m Message[T]) Value
}

// FieldPart is the field at path: its text, its number with the digits as they
// were sent, or true or false. The number 1 and the string "1" are one key: a
// producer that changes the type of its ids still means the same events, and
// where it does not, the ledger sees two payloads under one key and says so.
// The number 1.0 is another key than 1.
//
// An object or an array is [ReasonKeyInvalid]. The field must be among the
// row's Fields; where it is not, the program is wrong and the KeyFunc panics
// with a message that says so, for an error would be taken for the message's.
func FieldPart(path string) KeyPart[Row] {
	return KeyPart[Row]{
		source: "field " + path,
		field:  path,
		read: func(m Message[Row]) Value {
			i := -1
			if m.Body.Fields != nil {
				i = m.Body.Fields.Index(path)
			}
			if i < 0 {
				panic(fmt.Sprintf("schema: the key field %q is not among the fields of the row: give it to NewFields", path))
			}
			return m.Body.Values[i]
		},
	}
}

// HeaderPart is the value of the last header of the given name. Names are
// compared exactly.
func HeaderPart[T any](name string) KeyPart[T] {
	return KeyPart[T]{
		source: "header " + name,
		read: func(m Message[T]) Value {
			b, _ := m.Header(name)
			return Value{Kind: Bytes, Raw: b}
		},
	}
}

// RecordKeyPart is the record key, as bytes.
func RecordKeyPart[T any]() KeyPart[T] {
	return KeyPart[T]{
		source: "record key",
		read: func(m Message[T]) Value {
			return Value{Kind: Bytes, Raw: m.Key}
		},
	}
}

// ValuePart is the text that f derives from the message. f answers with the
// empty text where the message has no key.
func ValuePart[T any](f func(m Message[T]) string) KeyPart[T] {
	return KeyPart[T]{
		source: "key value",
		read: func(m Message[T]) Value {
			return Value{Kind: String, Raw: []byte(f(m))}
		},
	}
}

// value returns the part's value, or the fault of a message that has none:
// messages without a key must not meet under one.
func (p KeyPart[T]) value(m Message[T]) (Value, error) {
	v := p.read(m)
	switch {
	case v.Kind == Object || v.Kind == Array:
		return Value{}, p.fault(m, ReasonKeyInvalid, errors.New("an object or an array is no key"))
	case v.Present() && len(v.Raw) > 0:
		return v, nil
	case p.field != "" && m.Tombstone():
		return Value{}, p.fault(m, ReasonKeyMissing, errTombstoneField)
	default:
		return Value{}, p.fault(m, ReasonKeyMissing, fmt.Errorf("the %s is %s", p.source, absence(v)))
	}
}

var errTombstoneField = errors.New("a tombstone has no fields: take the record key or a header as the key where tombstones are expected")

// absence says how v is not there.
func absence(v Value) string {
	switch {
	case v.Kind == Null:
		return "null"
	case v.Kind == Missing || v.Raw == nil:
		return "missing"
	default:
		return "empty"
	}
}

// uuid returns the part's value as a UUID.
func (p KeyPart[T]) uuid(m Message[T]) (uuid.UUID, error) {
	v, err := p.value(m)
	if err != nil {
		return uuid.Nil, err
	}
	id, err := parseUUID(v)
	switch {
	case err != nil:
		return uuid.Nil, p.fault(m, ReasonKeyInvalid, fmt.Errorf("the %s is no UUID: %w", p.source, err))
	case id == uuid.Nil || id == uuid.Max:
		return uuid.Nil, p.fault(m, ReasonKeyInvalid, fmt.Errorf("the %s is %v, which stands for no id", p.source, id))
	}
	return id, nil
}

// parseUUID takes the canonical text of RFC 9562, section 4, and the 16 bytes.
func parseUUID(v Value) (uuid.UUID, error) {
	const canonical = 36
	switch {
	case v.Kind == Bytes && len(v.Raw) == 16:
		return uuid.UUID(v.Raw), nil
	case v.Kind != Bytes && v.Kind != String:
		return uuid.Nil, errors.New("it is not a text")
	case len(v.Raw) != canonical:
		return uuid.Nil, fmt.Errorf("it has %d bytes, the canonical text has %d", len(v.Raw), canonical)
	}
	return uuid.ParseBytes(v.Raw)
}

func (p KeyPart[T]) fault(m Message[T], reason Reason, err error) *Fault {
	return &Fault{Reason: reason, Record: m.Record, Field: p.field, Err: err}
}
