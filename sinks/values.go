package sinks

import (
	"encoding/binary"
	"math"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncestream/oncestream/schema"
)

// The rules of conversion. A carrier is the array type in which the values of a
// column travel. Where the column's own type is in the table below, values are
// checked and written in its binary format here; every other type travels as
// text and is cast to the column's type by the statement, so that PostgreSQL's
// own parser decides.
//
// Everywhere: Null is null. Bytes for a column that is not bytea are read as
// text. A String for a column that is not text is parsed as the column's type,
// so that the record key "1" fits an integer column.
type carrier struct {
	name        string // of the array's elements in SQL
	elem, array uint32
	encode      encoder
}

// encoder appends the value in the binary format of the carrier's elements. v
// is neither Missing nor Null. An error is a [*schema.Fault] without a place.
type encoder func(dst []byte, c *TableColumn, v schema.Value) ([]byte, error)

func carrierOf(c *TableColumn) carrier {
	switch c.BaseOID {
	case pgtype.BoolOID:
		return carrier{"boolean", pgtype.BoolOID, pgtype.BoolArrayOID, encodeBool}
	case pgtype.Int2OID:
		return carrier{"smallint", pgtype.Int2OID, pgtype.Int2ArrayOID, encodeInt2}
	case pgtype.Int4OID:
		return carrier{"integer", pgtype.Int4OID, pgtype.Int4ArrayOID, encodeInt4}
	case pgtype.Int8OID:
		return carrier{"bigint", pgtype.Int8OID, pgtype.Int8ArrayOID, encodeInt8}
	case pgtype.NumericOID:
		return carrier{"numeric", pgtype.NumericOID, pgtype.NumericArrayOID, encodeNumeric}
	case pgtype.Float4OID:
		return carrier{"real", pgtype.Float4OID, pgtype.Float4ArrayOID, encodeFloat4}
	case pgtype.Float8OID:
		return carrier{"double precision", pgtype.Float8OID, pgtype.Float8ArrayOID, encodeFloat8}
	case pgtype.UUIDOID:
		return carrier{"uuid", pgtype.UUIDOID, pgtype.UUIDArrayOID, encodeUUID}
	case pgtype.ByteaOID:
		return carrier{"bytea", pgtype.ByteaOID, pgtype.ByteaArrayOID, encodeBytea}
	default:
		return carrierOfTimeAndText(c)
	}
}

func carrierOfTimeAndText(c *TableColumn) carrier {
	switch c.BaseOID {
	case pgtype.DateOID:
		return carrier{"date", pgtype.DateOID, pgtype.DateArrayOID, encodeDate}
	case pgtype.TimestampOID:
		return carrier{"timestamp", pgtype.TimestampOID, pgtype.TimestampArrayOID, encodeTimestamp}
	case pgtype.TimestamptzOID:
		return carrier{"timestamptz", pgtype.TimestamptzOID, pgtype.TimestamptzArrayOID, encodeTimestamptz}
	case pgtype.JSONOID:
		return carrier{"json", pgtype.JSONOID, pgtype.JSONArrayOID, encodeJSON}
	case pgtype.JSONBOID:
		return carrier{"jsonb", pgtype.JSONBOID, pgtype.JSONBArrayOID, encodeJSONB}
	default:
		return carrier{"text", pgtype.TextOID, pgtype.TextArrayOID, textEncoder(c)}
	}
}

// textEncoder tells the types that text is assigned to from those that need a
// cast; see [target.cast].
func textEncoder(c *TableColumn) encoder {
	switch {
	case c.BaseOID == pgtype.VarcharOID, c.BaseOID == pgtype.BPCharOID, c.BaseOID == pgtype.TextOID:
		return encodeText
	case c.Array:
		return encodeArray
	default:
		return encodeForCast
	}
}

// target is a column of the table and the way its values travel.
type target struct {
	TableColumn
	carrier
	// key says that values identify a row. Values that PostgreSQL holds equal
	// then have equal bytes, for keys are compared in memory before the
	// statement: 1.0 and 1.00, -0 and 0, 'a' and 'a ' in a char column.
	key bool
}

func newTarget(c TableColumn, key bool) target {
	return target{TableColumn: c, carrier: carrierOf(&c), key: key}
}

// cast is the type to cast to in SQL, empty where the carrier's type is
// assigned to the column as it is. It has no modifier: a cast to varchar(3)
// would cut a value that the assignment refuses.
func (t *target) cast() string {
	if t.elem != pgtype.TextOID || t.BaseOID == pgtype.TextOID || t.BaseOID == pgtype.VarcharOID {
		return ""
	}
	return t.BaseType
}

// element appends v as an element of an array, its length first.
func (t *target) element(dst []byte, v schema.Value) ([]byte, error) {
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, nullLength)
	if !v.Present() {
		return dst, nil
	}
	if v.Kind == schema.Bytes && t.BaseOID != pgtype.ByteaOID {
		v.Kind = schema.String
	}
	dst, err := t.encode(dst, &t.TableColumn, v)
	if err != nil {
		return dst[:start], err
	}
	if t.key {
		dst = canonical(dst, start+4, t.BaseOID)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst, nil
}

// canonical rewrites the value that begins at start so that equal values have
// equal bytes.
func canonical(dst []byte, start int, oid uint32) []byte {
	value := dst[start:]
	switch oid {
	case pgtype.NumericOID:
		binary.BigEndian.PutUint16(value[6:], leastScale(value))
	case pgtype.Float4OID:
		if binary.BigEndian.Uint32(value) == math.Float32bits(float32(math.Copysign(0, -1))) {
			clear(value)
		}
	case pgtype.Float8OID:
		if binary.BigEndian.Uint64(value) == math.Float64bits(math.Copysign(0, -1)) {
			clear(value)
		}
	case pgtype.BPCharOID:
		for len(dst) > start && dst[len(dst)-1] == ' ' {
			dst = dst[:len(dst)-1]
		}
	}
	return dst
}

// leastScale returns the number of digits after the point that a binary numeric
// needs: its groups of four digits end without zeros, its declared scale may not.
func leastScale(numeric []byte) uint16 {
	groups := int(binary.BigEndian.Uint16(numeric))
	weight := int(int16(binary.BigEndian.Uint16(numeric[2:])))
	if groups == 0 {
		return 0
	}
	scale := 4 * (groups - 1 - weight)
	last := binary.BigEndian.Uint16(numeric[8+2*(groups-1):])
	for ; last%10 == 0 && last > 0; last /= 10 {
		scale--
	}
	return uint16(max(scale, 0))
}

// misfit is a value that is of the column's kind but outside of what it holds.
func misfit(c *TableColumn, v schema.Value, why string) error {
	return schema.Faultf(nil, schema.ReasonValueRange, "%s does not fit %s: %s", shown(v), c.Type, why)
}

// alien is a value that has no meaning in the column's type.
func alien(c *TableColumn, v schema.Value, why string) error {
	return schema.Faultf(nil, schema.ReasonValueType, "%s is no %s: %s", shown(v), c.Type, why)
}
