package registry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/cockroachdb/apd/v3"
	"github.com/google/uuid"
	"github.com/twmb/avro"
)

// avroOptions are those that every schema is read with. Names are not checked,
// for what is registered is in use already. Each logical type becomes a
// schema.Value as it is decoded, where its scale is still at hand; the library's
// own types lose trailing zeros (big.Rat) or the digits of a far year.
func avroOptions() []avro.SchemaOpt {
	day := func(n int64) time.Time { return time.Unix(n*86400, 0) }
	nanos := func(n int64) time.Time { return time.Unix(0, n) }
	return []avro.SchemaOpt{
		avro.WithLaxNames(nil),
		logical("date", stamp(day, "2006-01-02")),
		logical("time-millis", clock(time.Millisecond)),
		logical("time-micros", clock(time.Microsecond)),
		logical("timestamp-millis", stamp(time.UnixMilli, stampLayout)),
		logical("timestamp-micros", stamp(time.UnixMicro, stampLayout)),
		logical("timestamp-nanos", stamp(nanos, stampLayout)),
		logical("local-timestamp-millis", stamp(time.UnixMilli, localLayout)),
		logical("local-timestamp-micros", stamp(time.UnixMicro, localLayout)),
		logical("local-timestamp-nanos", stamp(nanos, localLayout)),
		logical("decimal", decimal),
		logical("big-decimal", bigDecimal),
		logical("duration", duration),
		logical("uuid", fixedUUID),
	}
}

// conversion returns the schema.Value of a value whose Avro type may be any. It
// answers [avro.ErrSkipCustomType] where the logical type has no meaning for the
// Avro type: it is ignored then, as the specification says.
type conversion func(v any, node *avro.SchemaNode) (any, error)

// logical names what converts a logical type. An error takes the value's place,
// for the library does not say in which field it was.
func logical(name string, convert conversion) avro.CustomType {
	return avro.CustomType{LogicalType: name, Decode: func(v any, node *avro.SchemaNode) (any, error) {
		value, err := convert(v, node)
		if err == nil || errors.Is(err, avro.ErrSkipCustomType) {
			return value, err
		}
		return err, nil
	}}
}

// integer returns v, an int or a long.
func integer(v any) (int64, error) {
	switch v := v.(type) {
	case int32:
		return int64(v), nil
	case int64:
		return v, nil
	}
	return 0, avro.ErrSkipCustomType
}

// stamp converts a count of something since 1970.
func stamp(at func(int64) time.Time, layout string) conversion {
	return func(v any, _ *avro.SchemaNode) (any, error) {
		n, err := integer(v)
		if err != nil {
			return nil, err
		}
		return timeValue(at(n), layout), nil
	}
}

// clock converts a count of units since midnight.
func clock(unit time.Duration) conversion {
	day := int64(24 * time.Hour / unit)
	return func(v any, node *avro.SchemaNode) (any, error) {
		n, err := integer(v)
		if err != nil {
			return nil, err
		}
		if n < 0 || n >= day {
			return nil, fmt.Errorf("%s %d is no time of a day", node.LogicalType, n)
		}
		return timeValue(time.Unix(0, n*int64(unit)), clockLayout), nil
	}
}

// Limits of a decimal. PostgreSQL's numeric has at most 131,072 digits before
// the point and 16,383 after it; what is far beyond is not turned into text.
const (
	maxScale    = 1 << 17
	maxUnscaled = 1 << 16 // bytes
)

var errNoDigits = errors.New("a decimal of no bytes has no value")

func decimal(v any, node *avro.SchemaNode) (any, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, avro.ErrSkipCustomType
	}
	return decimalValue(b, int64(node.Scale))
}

// bigDecimal reads a decimal that brings its scale: the unscaled bytes with
// their length before them, and the scale, both as longs.
func bigDecimal(v any, _ *avro.SchemaNode) (any, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, avro.ErrSkipCustomType
	}
	length, n := binary.Varint(b)
	if n <= 0 || length < 0 || length > int64(len(b)-n) {
		return nil, errors.New("big-decimal: its bytes are cut short")
	}
	unscaled, rest := b[n:n+int(length)], b[n+int(length):]
	scale, n := binary.Varint(rest)
	if n <= 0 || n < len(rest) {
		return nil, errors.New("big-decimal: its scale is cut short, or data follows it")
	}
	return decimalValue(unscaled, scale)
}

// decimalValue returns unscaled, a two's complement, times 10 to the -scale.
func decimalValue(unscaled []byte, scale int64) (any, error) {
	switch {
	case len(unscaled) == 0:
		return nil, errNoDigits
	case len(unscaled) > maxUnscaled:
		return nil, fmt.Errorf("a decimal of %d bytes is too large", len(unscaled))
	case scale > maxScale || scale < -maxScale:
		return nil, fmt.Errorf("the decimal's scale of %d is too large", scale)
	}
	var d apd.Decimal
	if len(unscaled) <= 8 {
		d.SetFinite(smallInteger(unscaled), int32(-scale))
	} else {
		n := wideInteger(unscaled)
		d.Negative = n.Sign() < 0
		d.Exponent = int32(-scale)
		d.Coeff.SetMathBigInt(n.Abs(n))
	}
	return number(d.Append(nil, 'f')), nil
}

// smallInteger returns the integer of at most 8 bytes in two's complement.
func smallInteger(b []byte) int64 {
	n := int64(int8(b[0]))
	for _, c := range b[1:] {
		n = n<<8 | int64(c)
	}
	return n
}

func wideInteger(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	return n
}

// duration converts 12 bytes: months, days and milliseconds, which stay apart,
// for a month has no length in days.
func duration(v any, _ *avro.SchemaNode) (any, error) {
	b, ok := v.([]byte)
	if !ok || len(b) != 12 {
		return nil, avro.ErrSkipCustomType
	}
	return text([]byte(avro.DurationFromBytes(b).String())), nil
}

// fixedUUID writes the 16 bytes of a UUID as its text; the other UUIDs are text
// already, which is kept as it is.
func fixedUUID(v any, _ *avro.SchemaNode) (any, error) {
	b, ok := v.([]byte)
	if !ok || len(b) != len(uuid.UUID{}) {
		return nil, avro.ErrSkipCustomType
	}
	return text([]byte(uuid.UUID(b).String())), nil
}
