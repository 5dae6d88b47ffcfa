package sinks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncestream/oncestream/schema"
)

// Proves against pgx's own encoder that an array has every part of the format,
// also those that PostgreSQL does not look at.
func TestArrayIsAsPgxWritesIt(t *testing.T) {
	one, two := int64(1), int64(-2)
	for name, values := range map[string][]*int64{"without null": {&one, &two}, "with null": {&one, nil, &two}} {
		t.Run(name, func(t *testing.T) {
			want, err := pgtype.NewMap().Encode(pgtype.Int8ArrayOID, pgtype.BinaryFormatCode, values, nil)
			if err != nil {
				t.Fatal(err)
			}
			target := newTarget(TableColumn{Type: "bigint", BaseOID: pgtype.Int8OID, Mod: -1}, false)
			var a array
			a.reset(target.carrier)
			for _, v := range values {
				value := schema.Value{Kind: schema.Null}
				if v != nil {
					value = numberValue(*v)
				}
				cell, err := target.element(nil, value)
				if err != nil {
					t.Fatal(err)
				}
				a.append(cell)
			}
			if diff := cmp.Diff(want, a.bytes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
