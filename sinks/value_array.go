package sinks

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncestream/oncestream/schema"
)

// encodeArray takes a JSON array, or text in PostgreSQL's own array format where
// its parser changes no element.
func encodeArray(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	switch {
	case v.Kind == schema.Array:
		return appendArrayLiteral(dst, c, v)
	case v.Kind != schema.String:
		return dst, alien(c, v, "an array is needed")
	case !bytes.ContainsAny(v.Raw[:min(1, len(v.Raw))], "{["):
		return dst, alien(c, v, "an array is needed")
	case changes(c):
		return dst, alien(c, v, "a JSON array is needed: in a text, PostgreSQL would round or cut elements in silence")
	}
	return encodeForCast(dst, c, v)
}

// changes reports whether PostgreSQL's parser may change an element to fit.
func changes(c *TableColumn) bool {
	switch c.ElemOID {
	case pgtype.NumericOID, pgtype.VarcharOID, pgtype.BPCharOID:
		return c.Mod >= 0
	case pgtype.TimestampOID, pgtype.TimestamptzOID, pgtype.TimeOID, pgtype.TimetzOID, pgtype.IntervalOID,
		pgtype.TsrangeOID, pgtype.TstzrangeOID, moneyOID, pgtype.NameOID, pgtype.QCharOID:
		return true
	default:
		return false
	}
}

// appendArrayLiteral writes `{1,{2,null},"a,b"}`. Inner arrays are dimensions,
// which must be of one length each. Each element must fit as a column of the
// elements' type would have it.
func appendArrayLiteral(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	w := arrayWriter{element: TableColumn{Name: c.Name, Type: c.Type, BaseOID: c.ElemOID, Mod: c.Mod}}
	w.encode = carrierOf(&w.element).encode
	dst, err := w.array(dst, jsontext.NewDecoder(bytes.NewReader(v.Raw)), 0)
	if errors.Is(err, errShape) {
		return dst, misfit(c, v, err.Error())
	}
	return dst, err
}

// arrayWriter writes the elements of one array.
type arrayWriter struct {
	element TableColumn
	encode  encoder
	scratch []byte
	sizes   []int // by depth, of the arrays that have ended
	leaves  int   // the depth of the elements, 0 before the first
}

var errShape = errors.New("inner arrays must be of one length, not empty, and at most six deep")

// array writes the array that comes next, which lies in so many others.
func (w *arrayWriter) array(dst []byte, dec *jsontext.Decoder, depth int) ([]byte, error) {
	_, err := dec.ReadToken()
	if err == nil && depth == 6 {
		err = errShape
	}
	dst = append(dst, '{')
	n := 0
	for ; err == nil && dec.PeekKind() != ']'; n++ {
		if n > 0 {
			dst = append(dst, ',')
		}
		if dec.PeekKind() == '[' {
			dst, err = w.array(dst, dec, depth+1)
		} else {
			dst, err = w.leaf(dst, dec, depth+1)
		}
	}
	if err != nil {
		return dst, err
	}
	_, err = dec.ReadToken()
	return append(dst, '}'), errors.Join(err, w.shape(depth, n))
}

// shape notes the length of an array that has ended.
func (w *arrayWriter) shape(depth, n int) error {
	for len(w.sizes) <= depth {
		w.sizes = append(w.sizes, -1)
	}
	if w.sizes[depth] < 0 {
		w.sizes[depth] = n
	}
	if w.sizes[depth] != n || depth > 0 && n == 0 {
		return errShape
	}
	return nil
}

func (w *arrayWriter) leaf(dst []byte, dec *jsontext.Decoder, depth int) ([]byte, error) {
	if w.leaves == 0 {
		w.leaves = depth
	}
	if w.leaves != depth {
		return dst, errShape
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return dst, err
	}
	v, err := schema.ValueOf(raw)
	if err != nil {
		return dst, err
	}
	if v.Kind == schema.Null {
		return append(dst, "null"...), nil
	}
	return w.append(dst, raw, v)
}

// append writes one element, after it was checked as a column's value. Its text
// is what PostgreSQL's parser of the type reads.
func (w *arrayWriter) append(dst []byte, raw jsontext.Value, v schema.Value) (_ []byte, err error) {
	if w.scratch, err = w.encode(w.scratch[:0], &w.element, v); err != nil {
		return dst, err
	}
	switch w.element.BaseOID {
	case pgtype.JSONOID, pgtype.JSONBOID:
		return appendArrayElement(dst, raw), nil
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID: // whole numbers also as 5.0 and 1e3
		n, err := integer(&w.element, v, 64)
		return strconv.AppendInt(dst, n, 10), err
	default:
		return appendArrayElement(dst, v.Raw), nil
	}
}

func appendArrayElement(dst, text []byte) []byte {
	dst = append(dst, '"')
	for _, b := range text {
		if b == '"' || b == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, b)
	}
	return append(dst, '"')
}
