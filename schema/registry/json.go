package registry

import (
	"context"
	"errors"

	"github.com/oncestream/oncestream/schema"
)

// JSON returns the decoder of framed JSON objects into rows of the given fields,
// by the rules of [schema.Rows]. JSON needs no schema to be read, so that the
// registry is not asked, and the payload is not validated against its schema: a
// record is read while the registry is down, or has lost the schema.
func (r *Registry) JSON(fields *schema.Fields) schema.Decoder[schema.Row] {
	rows := schema.Rows(fields)
	return func(ctx context.Context, r *schema.Record) (schema.Row, error) {
		if r.Tombstone() {
			return rows(ctx, r)
		}
		id, body, err := unframe(r.Value)
		if err != nil {
			return schema.Row{}, schema.Faultf(r, schema.ReasonDecode, "%w", err)
		}
		inner := *r
		inner.Value = body
		row, err := rows(ctx, &inner)
		if f, ok := errors.AsType[*schema.Fault](err); ok {
			// The dead letter must be of the record, not of what is in its frame.
			return schema.Row{}, schema.Faultf(r, f.Reason, "schema id %d, after the frame of %d bytes: %w", id, frameSize, f.Err)
		}
		return row, err
	}
}
