package schema

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Rows returns the decoder of JSON objects into rows of the given fields. It
// reads the payload once and strictly (RFC 7493): a name that occurs twice in
// one object, mapped or not, invalid UTF-8, a lone surrogate, data after the
// object and nesting beyond 10,000 levels are decode faults that name the byte.
//
// A path's names lead into nested objects; where an outer value is no object,
// the fields inside it are [Missing]. A dot within a name is written `\.`, see
// [SplitPath]. A path may name an object as a whole ("a") while another names a
// field in it ("a.b"). Names are compared exactly, upper and lower case differ.
//
// Numbers keep the literal that was sent, with every digit; an object or an
// array keeps its JSON text. All values but strings with escapes share memory
// with the record.
//
// A tombstone gives a row with all values Missing and no error: the sink decides
// what it means. A payload of no bytes, one that is no object, and the JSON text
// null are decode faults; the text null is no tombstone.
func Rows(fields *Fields) Decoder[Row] {
	root := fields.Tree()
	readers := sync.Pool{New: func() any { return newRowReader() }}
	return func(_ context.Context, r *Record) (Row, error) {
		row := Row{Fields: fields, Values: make([]Value, fields.Len())}
		if r.Tombstone() {
			return row, nil
		}
		reader := readers.Get().(*rowReader)
		err := reader.read(root, r.Value, row.Values)
		reader.release()
		readers.Put(reader)
		if err != nil {
			return Row{}, jsonFault(r, err)
		}
		return row, nil
	}
}

// rowReader is what one decoding needs besides the row; it is used again for
// the next one, which saves all its allocations.
type rowReader struct {
	doc    []byte
	source bytes.Buffer // over doc; the tokenizer reads such a buffer in place
	tokens jsontext.Decoder
	name   []byte // scratch for a name with escapes
}

func newRowReader() *rowReader {
	s := &rowReader{}
	s.release()
	return s
}

// release lets go of the record, which the pool must not keep alive, and
// prepares the tokenizer for the next one.
func (s *rowReader) release() {
	s.doc, s.source = nil, bytes.Buffer{}
	s.tokens.Reset(&s.source)
}

// read fills values from doc.
func (s *rowReader) read(root *Tree, doc []byte, values []Value) error {
	s.doc, s.source = doc, *bytes.NewBuffer(doc)
	if s.tokens.PeekKind() != '{' {
		return s.refuse()
	}
	if err := s.object(root, values); err != nil {
		return err
	}
	end := s.tokens.InputOffset()
	rest := bytes.TrimLeft(doc[end:], jsonSpace)
	if len(rest) > 0 {
		return fmt.Errorf("json at byte %d: data after the top-level value", len(doc)-len(rest))
	}
	return nil
}

// refuse says why a payload that does not begin with an object is none.
func (s *rowReader) refuse() error {
	raw, err := s.tokens.ReadValue()
	switch {
	case errors.Is(err, io.EOF):
		return errEmpty
	case err != nil:
		return err
	case raw.Kind() == 'n':
		return errNullText
	}
	return fmt.Errorf("json at byte %d: the payload must be an object, it is %s",
		s.tokens.InputOffset()-int64(len(raw)), kindName(raw.Kind()))
}

// object reads the members of the object that comes next; n is its node.
func (s *rowReader) object(n *Tree, values []Value) error {
	if _, err := s.tokens.ReadToken(); err != nil {
		return err
	}
	for s.tokens.PeekKind() != '}' {
		name, err := s.tokens.ReadValue()
		if err != nil {
			return err
		}
		if err := s.member(n.kids[string(s.unquoteName(name))], values); err != nil {
			return err
		}
	}
	_, err := s.tokens.ReadToken()
	return err
}

// unquoteName returns the name within the quotes; it is valid until the next one.
func (s *rowReader) unquoteName(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	// The tokenizer has checked the name, so that unquoting it cannot fail.
	s.name, _ = jsontext.AppendUnquote(s.name[:0], quoted)
	return s.name
}

// member reads the value that comes next. A nil n means that no field is there.
func (s *rowReader) member(n *Tree, values []Value) error {
	if n.Inner() && s.tokens.PeekKind() == '{' {
		return s.nested(n, values)
	}
	raw, err := s.tokens.ReadValue()
	if err != nil || n == nil {
		return err
	}
	n.Set(values, jsonValue(raw))
	return nil
}

// nested reads an object for the fields in it, and for itself where its own
// path is mapped too.
func (s *rowReader) nested(n *Tree, values []Value) error {
	// The offset is before the colon and the space that precede the object.
	start := int(s.tokens.InputOffset())
	if err := s.object(n, values); err != nil {
		return err
	}
	end := int(s.tokens.InputOffset())
	start += bytes.IndexByte(s.doc[start:end], '{')
	n.Set(values, Value{Kind: Object, Raw: s.doc[start:end:end]})
	return nil
}

// jsonValue returns the value of raw, one JSON value that was found valid.
func jsonValue(raw jsontext.Value) Value {
	switch raw[0] {
	case 'n':
		return Value{Kind: Null}
	case 't', 'f':
		return Value{Kind: Bool, Raw: raw}
	case '"':
		return Value{Kind: String, Raw: unquote(raw)}
	case '{':
		return Value{Kind: Object, Raw: raw}
	case '[':
		return Value{Kind: Array, Raw: raw}
	default:
		return Value{Kind: Number, Raw: raw}
	}
}

// unquote returns the text within the quotes, in the same memory unless there
// are escapes in it.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		end := len(quoted) - 1
		return quoted[1:end:end]
	}
	text, _ := jsontext.AppendUnquote(make([]byte, 0, len(quoted)), quoted)
	return text
}

var (
	errEmpty    = errors.New("json at byte 0: the payload is empty, which is neither a value nor a tombstone")
	errNullText = errors.New("json: the payload is the text null, which is no tombstone")
)

// kindName names a kind of JSON value in words.
func kindName(k jsontext.Kind) string {
	switch k {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	default:
		return "the text " + k.String()
	}
}
