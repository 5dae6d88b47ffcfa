package sinks

import (
	"github.com/oncestream/oncestream/schema"
)

// tombstone fills the key's cells of a message without body, and clears the
// others.
func (e *rowEncoder[T]) tombstone(arena []byte, row cells, msg *schema.Message[T]) ([]byte, error) {
	clear(row)
	for i := range e.columns {
		if !e.columns[i].key {
			continue
		}
		start := len(arena)
		v, err := e.tombstoneKey(i, msg)
		if err == nil {
			arena, err = e.value(arena, i, msg.Record, v)
		}
		if err != nil {
			return arena, err
		}
		row[i] = arena[start:len(arena):len(arena)]
	}
	return arena, nil
}

// tombstoneKey returns the value of a key's column for a message without body.
func (e *rowEncoder[T]) tombstoneKey(i int, msg *schema.Message[T]) (schema.Value, error) {
	c := &e.columns[i]
	if c.OfRecord {
		v, err := c.Value(msg)
		if err != nil {
			return v, blame(err, msg.Record, c.Field, c.Name)
		}
		return v, nil
	}
	keys := 0
	for j := range e.columns {
		if e.columns[j].key {
			keys++
		}
	}
	why := "the record has no key to delete by"
	if keys == 1 && msg.Key != nil {
		return bytesValue(msg.Key), nil
	} else if keys > 1 {
		why = "a tombstone has no field for one of several key columns: map the column to a pseudo-field"
	}
	f := schema.Faultf(msg.Record, schema.ReasonTombstone, "%s", why)
	f.Field, f.Column = c.Field, c.Name
	return schema.Value{}, f
}
