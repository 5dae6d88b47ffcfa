package tables

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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

// literal is a number as it is written. Its parts share memory with the text.
type literal struct {
	negative        bool
	whole, fraction []byte // decimal digits
	exponent        int64
}

func (l literal) len() int { return len(l.whole) + len(l.fraction) }

func (l literal) at(i int) byte {
	if i < len(l.whole) {
		return l.whole[i]
	}
	return l.fraction[i-len(l.whole)]
}

// significant returns the digits that are left without the zeros at both ends.
func (l literal) significant() (first, end int) {
	end = l.len()
	for first < end && l.at(first) == '0' {
		first++
	}
	for first < end && l.at(end-1) == '0' {
		end--
	}
	return first, end
}

// group returns the digit to the base 10000 that begins at i, of the digits
// from first to end.
func (l literal) group(i, first, end int) (g uint16) {
	for j := i; j < i+groupSize; j++ {
		g *= 10
		if j >= first && j < end {
			g += uint16(l.at(j) - '0')
		}
	}
	return g
}

func parseLiteral(text []byte) (literal, error) {
	var l literal
	rest := text
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
		l.negative = rest[0] == '-'
		rest = rest[1:]
	}
	l.whole, rest = cutDigits(rest)
	if len(rest) > 0 && rest[0] == '.' {
		l.fraction, rest = cutDigits(rest[1:])
	}
	if l.len() == 0 {
		return l, notNumeric(text)
	}
	if len(rest) == 0 {
		return l, nil
	}
	var ok bool
	if l.exponent, ok = parseExponent(rest); !ok {
		return l, notNumeric(text)
	}
	return l, nil
}

func cutDigits(text []byte) (digits, rest []byte) {
	for i, c := range text {
		if c < '0' || c > '9' {
			return text[:i], text[i:]
		}
	}
	return text, nil
}

// parseExponent reads "e-12". An exponent that is far out of range keeps to a
// number that is out of range too, whatever digits stand before it.
func parseExponent(text []byte) (int64, bool) {
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	text = text[1:]
	negative := len(text) > 0 && text[0] == '-'
	if negative || len(text) > 0 && text[0] == '+' {
		text = text[1:]
	}
	digits, rest := cutDigits(text)
	if len(digits) == 0 || len(rest) > 0 {
		return 0, false
	}
	var e int64
	for _, c := range digits {
		e = min(e*10+int64(c-'0'), math.MaxInt64/100)
	}
	if negative {
		e = -e
	}
	return e, true
}

func parseSpecial(text []byte) (sign uint16, ok bool) {
	name, minus := bytes.CutPrefix(text, []byte("-"))
	if !minus {
		name = bytes.TrimPrefix(text, []byte("+"))
	}
	switch lower := string(bytes.ToLower(name)); {
	case lower == "nan" && len(name) == len(text):
		return signNaN, true
	case lower != "inf" && lower != "infinity":
		return 0, false
	case minus:
		return signNInf, true
	default:
		return signInf, true
	}
}

// notNumeric quotes the text, but not a page of it.
func notNumeric(text []byte) error {
	const enough = 40
	if len(text) > enough {
		return fmt.Errorf("tables: %q and %d bytes more: %w", text[:enough], len(text)-enough, ErrNotNumeric)
	}
	return fmt.Errorf("tables: %q: %w", text, ErrNotNumeric)
}
