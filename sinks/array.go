package sinks

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// array is one parameter: a column of values in PostgreSQL's binary format of
// a one-dimensional array (array_recv in the server's arrayfuncs.c), written
// value by value without a Go value for each.
type array struct {
	elem, oid uint32 // the element's type and the array's
	n         uint32
	nulls     bool
	buf       []byte // room for the header, then the elements
}

const (
	arrayHeader = 20 // dimensions, null flag, element type, length, lower bound
	nullLength  = math.MaxUint32
)

// reset makes an empty array of the carrier's type and keeps the memory.
func (a *array) reset(c carrier) {
	*a = array{elem: c.elem, oid: c.array, buf: append(a.buf[:0], make([]byte, arrayHeader)...)}
}

// append adds an element that has its length before it, as [target.element]
// writes it.
func (a *array) append(element []byte) {
	a.n++
	a.nulls = a.nulls || binary.BigEndian.Uint32(element) == nullLength
	a.buf = append(a.buf, element...)
}

// bytes returns the whole array.
func (a *array) bytes() []byte {
	h := a.buf[:arrayHeader]
	binary.BigEndian.PutUint32(h, 1)
	if a.nulls {
		binary.BigEndian.PutUint32(h[4:], 1)
	}
	binary.BigEndian.PutUint32(h[8:], a.elem)
	binary.BigEndian.PutUint32(h[12:], a.n)
	binary.BigEndian.PutUint32(h[16:], 1)
	return a.buf
}

// arrays are all parameters of a statement, as the one argument of Exec. They
// go through pgx like any others, so that its tracers see the statement and its
// cache prepares it; only the encoding is already done.
type arrays []*array

// RewriteQuery implements [pgx.QueryRewriter]. It teaches the connection to
// pass an array on: the codec of an array type encodes Go slices element by
// element and knows no way for bytes that are ready. The connection is the
// transaction's, so no other goroutine looks at its type map.
func (as arrays) RewriteQuery(_ context.Context, conn *pgx.Conn, sql string, _ []any) (string, []any, error) {
	args := make([]any, len(as))
	for i, a := range as {
		teach(conn.TypeMap(), a.oid)
		args[i] = a
	}
	return sql, args, nil
}

func teach(m *pgtype.Map, oid uint32) {
	t, ok := m.TypeForOID(oid)
	if !ok {
		return // every carrier's array is known to pgx; if not, encoding says so
	}
	if _, taught := t.Codec.(readyCodec); taught {
		return
	}
	m.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: readyCodec{t.Codec}})
}

// readyCodec is the codec of an array type that also takes an *array; all else
// is left to the codec that was there.
type readyCodec struct{ pgtype.Codec }

func (c readyCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(*array); !ok {
		return c.Codec.PlanEncode(m, oid, format, value)
	}
	return readyPlan(format)
}

type readyPlan int16

var errReadyText = errors.New("an array that is ready has the binary format only")

// Encode appends the array. pgx tries the text format first for some element
// types, and the binary one after an error.
func (p readyPlan) Encode(value any, buf []byte) ([]byte, error) {
	if int16(p) != pgtype.BinaryFormatCode {
		return nil, errReadyText
	}
	return append(buf, value.(*array).bytes()...), nil
}
