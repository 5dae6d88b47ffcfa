package tables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"github.com/cockroachdb/apd/v3"
)

// DecodeNumeric returns the number that src holds in numeric's binary form. Its
// exponent is the scale's negative, so that 1.50 comes back as 1.50.
func DecodeNumeric(src []byte) (*apd.Decimal, error) {
	d := new(apd.Decimal)
	if err := decodeNumeric(d, src); err != nil {
		return nil, err
	}
	return d, nil
}

func decodeNumeric(d *apd.Decimal, src []byte) error {
	const header = 8
	if len(src) < header {
		return fmt.Errorf("tables: decode numeric: %d bytes are no header", len(src))
	}
	word := func(i int) uint16 { return binary.BigEndian.Uint16(src[2*i:]) }
	count, weight, sign, scale := int(word(0)), int(int16(word(1))), word(2), int(word(3))
	if len(src) != header+2*count {
		return fmt.Errorf("tables: decode numeric: %d digits in %d bytes", count, len(src)-header)
	}
	switch sign {
	case signPlus, signMinus:
		return decodeFinite(d, src[header:], weight, sign == signMinus, scale)
	case signNaN:
		*d = apd.Decimal{Form: apd.NaN}
	case signInf, signNInf:
		*d = apd.Decimal{Form: apd.Infinite, Negative: sign == signNInf}
	default:
		return fmt.Errorf("tables: decode numeric: no such sign: %#04x", sign)
	}
	return nil
}

// decodeFinite writes the decimal digits out, from the first one to the one
// that the scale ends at, and lets package big read them.
func decodeFinite(d *apd.Decimal, groups []byte, weight int, negative bool, scale int) error {
	if scale > maxScale {
		return fmt.Errorf("tables: decode numeric: scale %d", scale)
	}
	wanted := (weight+1)*groupSize + scale // decimal digits from the first group on
	var room [64]byte
	digits := room[:0]
	for ; len(groups) > 0; groups = groups[2:] {
		g := binary.BigEndian.Uint16(groups)
		if g > 9999 {
			return fmt.Errorf("tables: decode numeric: digit %d to the base 10000", g)
		}
		digits = append(digits, '0'+byte(g/1000), '0'+byte(g/100%10), '0'+byte(g/10%10), '0'+byte(g%10))
	}
	for len(digits) < wanted {
		digits = append(digits, '0')
	}
	for len(digits) > max(0, wanted) {
		if digits[len(digits)-1] != '0' {
			return errors.New("tables: decode numeric: digits beyond the scale")
		}
		digits = digits[:len(digits)-1]
	}
	*d = apd.Decimal{Exponent: -int32(scale)}
	setCoefficient(&d.Coeff, digits)
	d.Negative = negative && d.Coeff.Sign() != 0
	return nil
}

// setCoefficient takes the fast way where the digits fit a machine word.
func setCoefficient(c *apd.BigInt, digits []byte) {
	const fits = 19 // digits of any uint64
	if len(digits) > fits {
		n, _ := new(big.Int).SetString(string(digits), 10) // they are digits
		c.SetMathBigInt(n)
		return
	}
	var n uint64
	for _, digit := range digits {
		n = n*10 + uint64(digit-'0')
	}
	c.SetUint64(n)
}
