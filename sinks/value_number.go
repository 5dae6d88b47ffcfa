package sinks

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables"
)

// decimal is a literal taken apart without building a number: the value is
// ±coef × 10^low, where coef does not end in zero.
type decimal struct {
	neg, zero bool
	wide      bool   // coef has more than 19 digits and is not held
	coef      uint64 // the significant digits
	high, low int    // the exponents of the first and the last significant digit
	last      int    // the exponent of the last digit that is written
}

// scanDecimal reads a literal of JSON's or SQL's grammar. Exponents are held up
// to a million, far outside of what numeric can hold.
func scanDecimal(lit []byte) (d decimal, ok bool) {
	if len(lit) > 0 && (lit[0] == '-' || lit[0] == '+') {
		d.neg = lit[0] == '-'
		lit = lit[1:]
	}
	digits, point, first, last := 0, -1, -1, -1 // counts of digits; -1: not met
	var running uint64
	for len(lit) > 0 {
		c := lit[0]
		if c == '.' && point < 0 {
			point, lit = digits, lit[1:]
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		if c != '0' && first < 0 {
			first = digits
		}
		if first >= 0 && digits-first < 19 {
			running = running*10 + uint64(c-'0')
		}
		if c != '0' {
			last, d.coef = digits, running
		}
		digits, lit = digits+1, lit[1:]
	}
	if point < 0 {
		point = digits
	}
	exp, ok := scanExponent(lit)
	d.zero = first < 0
	d.high, d.low, d.last = point-1-first+exp, point-1-last+exp, point-digits+exp
	d.wide = d.high-d.low >= 19
	return d, ok && digits > 0
}

func scanExponent(s []byte) (exp int, ok bool) {
	if len(s) == 0 {
		return 0, true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	neg := len(s) > 0 && s[0] == '-'
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		exp = min(exp*10+int(c-'0'), 1_000_000)
	}
	if neg {
		exp = -exp
	}
	return exp, len(s) > 0
}

// int64 returns the value where it is whole and fits.
func (d *decimal) int64() (n int64, ok bool) {
	if d.zero {
		return 0, true
	}
	if d.wide || d.low < 0 || d.high > 18 {
		return 0, false
	}
	u := d.coef
	for range d.low {
		u *= 10 // at most 19 digits, so it cannot overflow 64 bits
	}
	if d.neg {
		return -int64(u), u <= -math.MinInt64
	}
	return int64(u), u <= math.MaxInt64
}

// numberOf refuses what is no number, or text that is none.
func numberOf(c *TableColumn, v schema.Value) (decimal, error) {
	if v.Kind != schema.Number && v.Kind != schema.String {
		return decimal{}, alien(c, v, "a number is needed")
	}
	d, ok := scanDecimal(v.Raw)
	if !ok {
		return d, alien(c, v, "a decimal number is needed")
	}
	return d, nil
}

// integer returns a whole number of at most the given bits. 5.0 and 1e3 are
// whole; 1.5 is refused, for nothing is rounded.
func integer(c *TableColumn, v schema.Value, bits int) (int64, error) {
	d, err := numberOf(c, v)
	if err != nil {
		return 0, err
	}
	if !d.zero && d.low < 0 {
		return 0, misfit(c, v, "it has digits after the point, and nothing is rounded")
	}
	n, ok := d.int64()
	if limit := int64(1) << (bits - 1); !ok || bits < 64 && (n < -limit || n >= limit) {
		return 0, misfit(c, v, fmt.Sprintf("it is outside of %d bits", bits))
	}
	return n, nil
}

func encodeInt2(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	n, err := integer(c, v, 16)
	return binary.BigEndian.AppendUint16(dst, uint16(n)), err
}

func encodeInt4(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	n, err := integer(c, v, 32)
	return binary.BigEndian.AppendUint32(dst, uint32(n)), err
}

func encodeInt8(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	n, err := integer(c, v, 64)
	return binary.BigEndian.AppendUint64(dst, uint64(n)), err
}

// The limits of a numeric without precision (PostgreSQL manual, 8.1.2).
const (
	maxDigitsBefore = 131072
	maxDigitsAfter  = 16383
)

// checkNumeric refuses a value that the column would round or not hold.
func checkNumeric(c *TableColumn, v schema.Value, d *decimal) error {
	before, after := maxDigitsBefore, maxDigitsAfter
	if precision, scale, ok := c.digits(); ok {
		before, after = precision-scale, scale
	}
	switch {
	case d.zero:
		return nil
	case d.low < -after:
		return misfit(c, v, fmt.Sprintf("it has %d digits after the point, and nothing is rounded", max(-d.low, 0)))
	case d.high >= before:
		return misfit(c, v, fmt.Sprintf("it has %d digits before the point", d.high+1))
	}
	return nil
}

// encodeNumeric takes no NaN and no infinity, for they are no amounts.
func encodeNumeric(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	d, err := numberOf(c, v)
	if err != nil {
		return dst, err
	}
	if err := checkNumeric(c, v, &d); err != nil {
		return dst, err
	}
	if d.zero && d.last < -maxDigitsAfter {
		return append(dst, make([]byte, 8)...), nil // a zero of no digits
	}
	out, err := tables.AppendNumericText(dst, v.Raw)
	if err != nil {
		return dst, schema.Faultf(nil, schema.ReasonValueType, "%w", err)
	}
	return out, nil
}

// float returns the nearest float of the given bits, as PostgreSQL does. NaN
// and the infinities are taken from text; a finite number outside of the range,
// or one so small that nothing but zero is left of it, is refused.
func float(c *TableColumn, v schema.Value, bits int) (float64, error) {
	if v.Kind == schema.String {
		switch string(v.Raw) {
		case "NaN", "Infinity", "-Infinity":
			return strconv.ParseFloat(string(v.Raw), bits)
		}
	}
	d, err := numberOf(c, v)
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(string(v.Raw), bits)
	if err != nil || f == 0 && !d.zero {
		return 0, misfit(c, v, "it is outside of the float's range")
	}
	return f, nil
}

func encodeFloat4(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	f, err := float(c, v, 32)
	return binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(f))), err
}

func encodeFloat8(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	f, err := float(c, v, 64)
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(f)), err
}
