package registry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/oncestream/oncestream/schema"
)

// frameSize is the length of what precedes the body: a zero byte and the
// schema's id, big-endian (the Confluent wire format).
const frameSize = 5

// unframe splits a framed payload.
func unframe(b []byte) (id uint32, body []byte, err error) {
	switch {
	case len(b) == 0:
		return 0, nil, errors.New("frame at byte 0: the payload is empty, which is neither a framed value nor a tombstone")
	case b[0] != 0:
		return 0, nil, fmt.Errorf("frame at byte 0: it is 0x%02x, and a framed value begins with 0x00; "+
			"a topic that is written without a schema registry is read by another decoder", b[0])
	case len(b) < frameSize:
		return 0, nil, fmt.Errorf("frame at byte %d: cut short, it has %d bytes", len(b), frameSize)
	}
	// Ids are positive integers of 32 bits; a registry calls others bad requests.
	if id = binary.BigEndian.Uint32(b[1:frameSize]); id > math.MaxInt32 {
		return 0, nil, fmt.Errorf("frame at byte 1: no registry has a schema id %d", id)
	}
	return id, b[frameSize:], nil
}

// filler sets the values of one row from a body and its schema.
type filler[S any] func(s S, body []byte, root *schema.Tree, values []schema.Value) error

// framed returns the decoder that finds the schema of each record by its frame.
func framed[S any](c *cache[S], fields *schema.Fields, fill filler[S]) schema.Decoder[schema.Row] {
	root := fields.Tree()
	return func(ctx context.Context, r *schema.Record) (schema.Row, error) {
		if r.Tombstone() {
			return newRow(fields), nil
		}
		id, body, err := unframe(r.Value)
		if err != nil {
			return schema.Row{}, schema.Faultf(r, schema.ReasonDecode, "%w", err)
		}
		s, err := c.get(ctx, id)
		switch {
		case schema.IsUnavailable(err):
			return schema.Row{}, fmt.Errorf("%s: schema registry, schema id %d: %w", r.Position(), id, err)
		case err != nil:
			return schema.Row{}, schema.Faultf(r, schema.ReasonDecode, "schema id %d: %w", id, err)
		}
		row := newRow(fields)
		if err := fill(s, body, root, row.Values); err != nil {
			return schema.Row{}, schema.Faultf(r, schema.ReasonDecode, "schema id %d: %w", id, err)
		}
		return row, nil
	}
}

func newRow(fields *schema.Fields) schema.Row {
	return schema.Row{Fields: fields, Values: make([]schema.Value, fields.Len())}
}
