package tables

import (
	"bytes"
	"fmt"
	"math"
)

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
