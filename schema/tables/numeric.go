package tables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/cockroachdb/apd/v3"
)

// Why a decimal cannot be written as numeric.
var (
	// ErrNotNumeric says that a text is no number at all.
	ErrNotNumeric = errors.New("not a number")
	// ErrNumericRange says that a number has more digits than numeric can hold:
	// 131072 before the decimal point, 16383 after it.
	ErrNumericRange = errors.New("outside the range of numeric")
)

// The binary form of numeric (PostgreSQL, src/backend/utils/adt/numeric.c,
// numeric_recv) is four words (the count of digits, the weight of the first,
// the sign, the scale) and the digits, which are to the base 10000: the digit
// of weight w counts 10000^w. Zeros at either end are left out; the scale is
// what brings them back.
const (
	groupSize = 4 // decimal digits in a digit to the base 10000
	maxWhole  = 131072
	maxScale  = 16383

	signPlus  = 0x0000
	signMinus = 0x4000
	signNaN   = 0xC000
	signInf   = 0xD000 // since PostgreSQL 14
	signNInf  = 0xF000
)

// AppendNumeric appends d in numeric's binary form, with each digit and with
// the scale of d: 1.50 stays 1.50. A positive exponent is written out, since
// numeric has none, and the sign of -0 is lost, for the same reason. The error
// is ErrNumericRange; then dst is returned as it was. A signalling NaN is
// refused with it.
func AppendNumeric(dst []byte, d *apd.Decimal) ([]byte, error) {
	switch {
	case d.Form == apd.NaN:
		return appendSpecial(dst, signNaN), nil
	case d.Form == apd.Infinite && d.Negative:
		return appendSpecial(dst, signNInf), nil
	case d.Form == apd.Infinite:
		return appendSpecial(dst, signInf), nil
	case d.Form != apd.Finite:
		return dst, fmt.Errorf("tables: %s: %w", d.Form, ErrNumericRange)
	}
	var room [64]byte
	digits := room[:0]
	if small := &d.Coeff; small.IsUint64() {
		digits = strconv.AppendUint(digits, small.Uint64(), 10)
	} else {
		digits = small.Append(digits, 10)
	}
	return appendFinite(dst, literal{negative: d.Negative, whole: digits, exponent: int64(d.Exponent)})
}

// AppendNumericText appends the number that the text says in numeric's binary
// form, without a detour over a decimal. It takes what a JSON number may be,
// and beside it a plus sign, a point at either end, leading zeros, and NaN and
// (with a sign) Infinity and inf in any case. Spaces are not taken. The error
// is ErrNotNumeric or ErrNumericRange; then dst is returned as it was.
func AppendNumericText(dst, text []byte) ([]byte, error) {
	l, err := parseLiteral(text)
	if err == nil {
		return appendFinite(dst, l)
	}
	if sign, ok := parseSpecial(text); ok {
		return appendSpecial(dst, sign), nil
	}
	return dst, err
}

func appendSpecial(dst []byte, sign uint16) []byte {
	return appendHeader(dst, 0, 0, sign, 0)
}

func appendHeader(dst []byte, count, weight int, sign uint16, scale int) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(count))
	dst = binary.BigEndian.AppendUint16(dst, uint16(int16(weight)))
	dst = binary.BigEndian.AppendUint16(dst, sign)
	return binary.BigEndian.AppendUint16(dst, uint16(scale))
}

// appendFinite cuts the digits into groups as the decimal point says. The first
// group may be short at its left, the last at its right.
func appendFinite(dst []byte, l literal) ([]byte, error) {
	lowest := l.exponent - int64(len(l.fraction)) // the power of ten of the last digit
	scale := max(0, -lowest)
	if scale > maxScale {
		return dst, rangeError("%d digits after the decimal point", scale)
	}
	first, end := l.significant()
	if first == end {
		return appendHeader(dst, 0, 0, signPlus, int(scale)), nil
	}
	highest := lowest + int64(l.len()-1-first)
	if highest >= maxWhole {
		return dst, rangeError("%d digits before the decimal point", highest+1)
	}
	weight := floorDiv(int(highest), groupSize)
	lead := int(highest) - weight*groupSize + 1 // digits in the first group
	count := 1 + (max(0, end-first-lead)+groupSize-1)/groupSize
	sign := uint16(signPlus)
	if l.negative {
		sign = signMinus
	}
	dst = appendHeader(dst, count, weight, sign, int(scale))
	for i := first - (groupSize - lead); i < end; i += groupSize {
		dst = binary.BigEndian.AppendUint16(dst, l.group(i, first, end))
	}
	return dst, nil
}

func rangeError(format string, digits int64) error {
	return fmt.Errorf("tables: "+format+": %w", digits, ErrNumericRange)
}

func floorDiv(a, b int) int {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}
