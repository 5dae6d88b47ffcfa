package sinks

import (
	"bytes"
	"math/big"
	"slices"
	"strconv"
)

// amount is an exact sum of decimals: small × 10^-scale, or wide in its place
// once 64 bits are too few. Its zero is 0. Sums of money stay small, which
// makes them cost no allocation.
type amount struct {
	small int64
	wide  *big.Int
	scale int // digits after the point, the most that any summand was written with
}

// add adds the literal that scanDecimal took apart as d. The scale follows the
// digits as they are written, so that 1.50 + 1.50 is 3.00 as in PostgreSQL.
func (a *amount) add(lit []byte, d *decimal) {
	a.rescale(max(a.scale, min(-d.last, maxDigitsAfter), 0))
	if d.zero {
		return
	}
	if n, ok := scaled(d, d.low+a.scale); ok && a.wide == nil {
		if sum := a.small + n; (sum > a.small) == (n > 0) {
			a.small = sum
			return
		}
	}
	a.widen()
	a.wide.Add(a.wide, wideScaled(lit, d, a.scale))
}

// rescale raises the scale and keeps the value.
func (a *amount) rescale(scale int) {
	shift := scale - a.scale
	a.scale = scale
	if shift == 0 {
		return
	}
	if a.wide == nil {
		if n, ok := timesTen(a.small, shift); ok {
			a.small = n
			return
		}
	}
	a.widen()
	a.wide.Mul(a.wide, powerOfTen(shift))
}

func (a *amount) widen() {
	if a.wide == nil {
		a.wide = big.NewInt(a.small)
	}
}

// appendText appends the sum as a literal.
func (a *amount) appendText(dst []byte) []byte {
	start := len(dst)
	if a.wide != nil {
		dst = a.wide.Append(dst, 10)
	} else {
		dst = strconv.AppendInt(dst, a.small, 10)
	}
	if a.scale == 0 {
		return dst
	}
	if dst[start] == '-' {
		start++
	}
	if pad := a.scale + 1 - (len(dst) - start); pad > 0 {
		dst = slices.Insert(dst, start, bytes.Repeat([]byte{'0'}, pad)...)
	}
	return slices.Insert(dst, len(dst)-a.scale, '.')
}

// scaled returns the value × 10^(shift-low) where 64 bits hold it.
func scaled(d *decimal, shift int) (int64, bool) {
	if d.wide || shift < 0 || d.coef > 1<<63-1 {
		return 0, false
	}
	n, ok := timesTen(int64(d.coef), shift)
	if d.neg {
		n = -n
	}
	return n, ok
}

// wideScaled returns the value × 10^scale, of all the digits that are written.
// Only zeros lie behind the scale, if anything.
func wideScaled(lit []byte, d *decimal, scale int) *big.Int {
	digits := make([]byte, 0, len(lit))
	for _, c := range lit {
		if c == 'e' || c == 'E' {
			break
		}
		if c >= '0' && c <= '9' {
			digits = append(digits, c)
		}
	}
	n, _ := new(big.Int).SetString(string(digits), 10) // digits only, so it is a number
	if shift := d.last + scale; shift >= 0 {
		n.Mul(n, powerOfTen(shift))
	} else {
		n.Quo(n, powerOfTen(-shift))
	}
	if d.neg {
		n.Neg(n)
	}
	return n
}

func timesTen(n int64, shift int) (int64, bool) {
	const most = (1<<63 - 1) / 10
	for range shift {
		if n > most || n < -most {
			return 0, false
		}
		n *= 10
		if n == 0 {
			break
		}
	}
	return n, true
}

func powerOfTen(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}
