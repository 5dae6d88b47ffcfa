package sinks

import (
	"encoding/binary"

	"github.com/oncestream/oncestream/schema"
)

// rowEncoder encodes the columns of a message.
type rowEncoder[T any] struct {
	columns []bound[T]
	targets []target
}

// nullCell is an encoded null.
var nullCell = []byte{0xff, 0xff, 0xff, 0xff}

// int8Cell is an encoded bigint.
func int8Cell(n int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, 8), uint64(n))
}

func newRowEncoder[T any](columns []bound[T]) *rowEncoder[T] {
	e := &rowEncoder[T]{columns: columns, targets: make([]target, len(columns))}
	for i := range columns {
		e.targets[i] = columns[i].target
	}
	return e
}

// encode fills row with the message's cells, which lie in the memory that is
// appended to arena. Missing values leave cells of no bytes.
func (e *rowEncoder[T]) encode(arena []byte, row cells, msg *schema.Message[T]) ([]byte, error) {
	for i := range e.columns {
		start := len(arena)
		var err error
		if arena, err = e.cell(arena, i, msg); err != nil {
			return arena, err
		}
		row[i] = arena[start:len(arena):len(arena)]
	}
	return arena, nil
}

// cell appends one value; nothing where it is missing. A cell keeps its memory
// also when the arena grows: it then lies in the arena before.
func (e *rowEncoder[T]) cell(arena []byte, i int, msg *schema.Message[T]) ([]byte, error) {
	c := &e.columns[i]
	v, err := c.Value(msg)
	if err != nil {
		return arena, blame(err, msg.Record, c.Field, c.Name)
	}
	return e.value(arena, i, msg.Record, v)
}

func (e *rowEncoder[T]) value(arena []byte, i int, r *schema.Record, v schema.Value) ([]byte, error) {
	c := &e.columns[i]
	if v.Kind == schema.Missing {
		return arena, nil
	}
	if v.Kind == schema.Null && (c.NotNull || c.key) {
		return arena, absent(r, c.Field, c.Name, "null")
	}
	arena, err := c.element(arena, v)
	if err != nil {
		return arena, blame(err, r, c.Field, c.Name)
	}
	return arena, nil
}

// complete makes a missing value null where that is the same, so that it makes
// no shape of its own, and refuses one where the row cannot do without.
func (e *rowEncoder[T]) complete(row cells, r *schema.Record) error {
	for i := range row {
		c := &e.columns[i]
		if len(row[i]) > 0 || c.HasDefault {
			continue
		}
		if c.NotNull {
			return absent(r, c.Field, c.Name, "missing")
		}
		row[i] = nullCell
	}
	return nil
}

func absent(r *schema.Record, field, column, what string) *schema.Fault {
	f := schema.Faultf(r, schema.ReasonNotNull, "the value is %s, and the column needs one", what)
	f.Field, f.Column = field, column
	return f
}

// keyed refuses a missing part of a key. A null one was refused before: a null
// equals no other, so it would never find its row again.
func (e *rowEncoder[T]) keyed(row cells, r *schema.Record) error {
	for i := range row {
		c := &e.columns[i]
		if c.key && len(row[i]) == 0 {
			return absent(r, c.Field, c.Name, "missing")
		}
	}
	return nil
}
