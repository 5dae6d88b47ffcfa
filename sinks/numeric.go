package sinks

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// appendNumericText appends the binary form of numeric: the count of groups of
// four digits, the weight of the first group, the sign, the scale, the groups
// (numeric_recv in the server's numeric.c). The literal was read by scanDecimal
// and is within the limits of numeric.
func appendNumericText(dst, literal []byte) ([]byte, error) {
	d, ok := scanDecimal(literal)
	if !ok {
		return dst, strconv.ErrSyntax
	}
	scale := max(-d.last, 0)
	digits := wideScaled(literal, &decimal{last: d.last}, scale).Append(nil, 10)
	if lack := scale + 1 - len(digits); lack > 0 {
		digits = append(bytes.Repeat([]byte{'0'}, lack), digits...)
	}
	before := len(digits) - scale
	digits = append(bytes.Repeat([]byte{'0'}, (4-before%4)%4), digits...)
	digits = append(digits, bytes.Repeat([]byte{'0'}, (4-scale%4)%4)...)
	return appendGroups(dst, digits, (before+3)/4-1, scale, d.neg), nil
}

func appendGroups(dst, digits []byte, weight, scale int, neg bool) []byte {
	zero := []byte("0000")
	for bytes.HasPrefix(digits, zero) {
		digits = digits[4:]
		weight--
	}
	digits = bytes.TrimSuffix(digits, zero)
	for bytes.HasSuffix(digits, zero) && len(digits)%4 == 0 {
		digits = digits[:len(digits)-4]
	}
	sign := uint16(0)
	if neg && len(digits) > 0 {
		sign = 0x4000
	}
	if len(digits) == 0 {
		weight = 0
	}
	for _, n := range []uint16{uint16(len(digits) / 4), uint16(int16(weight)), sign, uint16(scale)} {
		dst = binary.BigEndian.AppendUint16(dst, n)
	}
	for ; len(digits) > 0; digits = digits[4:] {
		n := (int(digits[0]-'0')*10+int(digits[1]-'0'))*100 + int(digits[2]-'0')*10 + int(digits[3]-'0')
		dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	}
	return dst
}
