package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/cockroachdb/apd/v3"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// valueColumn is a column of the test of values.
type valueColumn struct {
	name string
	typ  string // in SQL, with the default
	as   string // the conversion
	// read is an expression of SQL for the text of the column, which is %s in it.
	// Defaults to a cast.
	read string
	// canon gives one text to texts of the same value. Defaults to the text.
	canon func(string) string
	// draw draws a value's JSON and what must be read and made canonical of it.
	draw *rapid.Generator[cell]
}

func (c *valueColumn) reading(i int) string {
	name := fmt.Sprintf("c%d", i)
	if c.read == "" {
		return name + "::text"
	}
	return strings.ReplaceAll(c.read, "%s", name)
}

// fallback is what the column has where the field is missing.
func (c *valueColumn) fallback() string {
	if _, value, ok := strings.Cut(c.typ, " default "); ok {
		return textOf(strings.Trim(value, "'"))
	}
	return null
}

func valueColumns() []valueColumn {
	columns := append(numberColumns(), textColumns()...)
	columns = append(columns, timeColumns()...)
	columns = append(columns, nestedColumns()...)
	for i := range columns {
		columns[i].name = columns[i].typ + " " + columns[i].as
	}
	return columns
}

func numberColumns() []valueColumn {
	return []valueColumn{
		{typ: "boolean default true", draw: rapid.SampledFrom([]cell{{`true`, "true"}, {`false`, "false"}, {`"yes"`, "true"}, {`"off"`, "false"}, {`"T"`, "true"}, {`"0"`, "false"}})},
		{typ: "smallint default 7", draw: drawInt(-1<<15, 1<<15-1)},
		{typ: "integer", draw: drawInt(-1<<31, 1<<31-1)},
		{typ: "bigint", draw: drawInt(-1<<63, 1<<63-1)},
		{typ: "numeric", draw: drawDigits(`-?[1-9][0-9]{0,60}(\.[0-9]{1,60})?|0\.[0-9]{0,30}[1-9]`)},
		{typ: "numeric ", canon: canonDecimal, draw: drawDecimal(`-?[0-9]\.[0-9]{1,20}[eE][+-]?[1-9][0-9]?`)},
		{typ: "numeric(30,10)", canon: canonDecimal, draw: drawDecimal(`-?[1-9][0-9]{0,19}(\.[0-9]{1,10}0{0,5})?`)},
		{typ: "numeric(8,-2)", canon: canonDecimal, draw: drawDecimal(`-?[1-9][0-9]{0,7}00(\.0)?`)},
		{typ: "real", canon: canonFloat(32), draw: rapid.Map(rapid.Float32(), func(f float32) cell { return floatCell(float64(f), 32) })},
		{typ: "double precision", canon: canonFloat(64), draw: rapid.Map(rapid.Float64(), func(f float64) cell { return floatCell(f, 64) })},
		{typ: "double precision ", draw: rapid.SampledFrom([]cell{{`"NaN"`, "NaN"}, {`"Infinity"`, "Infinity"}, {`"-Infinity"`, "-Infinity"}})},
		{typ: "price", draw: rapid.Map(rapid.Int64Range(1, 9_999_999_999), func(n int64) cell { return same(apd.New(n, -2).Text('f')) })},
		{typ: "money", read: "%s::numeric::text", draw: rapid.Map(rapid.Int64Range(-1e12, 1e12), func(n int64) cell {
			s := apd.New(n, -2).Text('f')
			return cell{strconv.Quote(s), s}
		})},
		{typ: "int4range", draw: rapid.Map(rapid.IntRange(-1e9, 1e9), func(n int) cell {
			return cell{fmt.Sprintf(`"[%d,%d]"`, n, n+5), fmt.Sprintf("[%d,%d)", n, n+6)}
		})},
		{typ: "numeric(20,4)", as: "decimal:4", read: "%s::text", draw: rapid.Map(rapid.Int32(), func(n int32) cell {
			b := []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
			return cell{toJSON(b), apd.New(int64(n), -4).Text('f')}
		})},
	}
}

// same is a value that is sent as it must be read.
func same(s string) cell { return cell{s, s} }

// drawInt draws whole numbers, in each form that means one.
func drawInt(low, high int64) *rapid.Generator[cell] {
	return rapid.Custom(func(rt *rapid.T) cell {
		s := strconv.FormatInt(rapid.Int64Range(low, high).Draw(rt, "n"), 10)
		form := rapid.SampledFrom([]string{"%s", `"%s"`, "%s.0", "%se0", "%s.000E+0"}).Draw(rt, "form")
		return cell{fmt.Sprintf(form, s), s}
	})
}

// drawDigits draws numbers, as such or as text, of which each digit is kept.
func drawDigits(pattern string) *rapid.Generator[cell] {
	return rapid.Custom(func(rt *rapid.T) cell {
		s := rapid.StringMatching(pattern).Draw(rt, "digits")
		return cell{fmt.Sprintf(rapid.SampledFrom([]string{"%s", `"%s"`}).Draw(rt, "form"), s), s}
	})
}

// drawDecimal draws numbers whose zeros at the end may differ.
func drawDecimal(pattern string) *rapid.Generator[cell] {
	return rapid.Map(drawDigits(pattern), func(c cell) cell { return cell{c.sent, canonDecimal(c.want)} })
}

func canonDecimal(s string) string {
	d, _, err := apd.NewFromString(s)
	if err != nil {
		return err.Error()
	}
	d.Reduce(d)
	d.Negative = d.Negative && !d.IsZero()
	return d.String()
}

func floatCell(f float64, bits int) cell {
	s := strconv.FormatFloat(f, 'g', -1, bits)
	return same(s)
}

func canonFloat(bits int) func(string) string {
	return func(s string) string {
		f, err := strconv.ParseFloat(s, bits)
		if err != nil {
			return err.Error()
		}
		return strconv.FormatFloat(f, 'g', -1, bits)
	}
}

func textColumns() []valueColumn {
	octets := rapid.SliceOfN(rapid.Byte(), 0, 40)
	return []valueColumn{
		{typ: "text", draw: drawText(200)},
		{typ: "varchar(20)", draw: drawText(20)},
		{typ: "char(20)", draw: rapid.Map(drawText(20), func(c cell) cell { return cell{c.sent, strings.TrimRight(c.want, " ")} })},
		{typ: "uuid", draw: rapid.Custom(func(rt *rapid.T) cell {
			s := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "octets")).String()
			return cell{strconv.Quote(rapid.SampledFrom([]string{s, strings.ToUpper(s)}).Draw(rt, "form")), s}
		})},
		{typ: "bytea", draw: rapid.Map(octets, func(b []byte) cell { return cell{fmt.Sprintf(`"\\x%X"`, b), `\x` + hex.EncodeToString(b)} })},
		{typ: "bytea", as: "base64", draw: rapid.Map(octets, func(b []byte) cell {
			return cell{strconv.Quote(base64.StdEncoding.EncodeToString(b)), `\x` + hex.EncodeToString(b)}
		})},
		{typ: "bytea", as: "hex", draw: rapid.Map(octets, func(b []byte) cell { return cell{fmt.Sprintf(`"%x"`, b), `\x` + hex.EncodeToString(b)} })},
		{typ: "text", as: "strip_nul", draw: rapid.Map(drawText(20), func(c cell) cell { return cell{`"\u0000` + c.sent[1:], c.want} })},
		{typ: "mood default 'ok'", draw: rapid.SampledFrom([]cell{{`"sad"`, "sad"}, {`"ok"`, "ok"}, {`"so, so"`, "so, so"}})},
		{typ: "inet", canon: canonPrefix, draw: rapid.Map(drawPrefix(), func(p netip.Prefix) cell { return cell{strconv.Quote(p.String()), p.String()} })},
		{typ: "cidr", canon: canonPrefix, draw: rapid.Map(drawPrefix(), func(p netip.Prefix) cell {
			return cell{strconv.Quote(p.Masked().String()), p.Masked().String()}
		})},
	}
}

// drawText draws texts of up to a number of characters, written as UTF-8 or with
// each character escaped.
func drawText(limit int) *rapid.Generator[cell] {
	texts := rapid.OneOf(rapid.StringN(0, limit, -1), rapid.SampledFrom([]string{"", " ", "null", "NULL", `\N`, `\`, `"`, "'", "\t", "\n\r", "{}", "\u2028", "\ufffd", "👩‍👩‍👧", "ä\u0308", "\ufeff"}))
	texts = texts.Filter(func(s string) bool { return !strings.Contains(s, "\x00") })
	return rapid.Custom(func(rt *rapid.T) cell {
		s := texts.Draw(rt, "text")
		return cell{rapid.SampledFrom([]func(string) string{func(s string) string { return toJSON(s) }, escaped}).Draw(rt, "form")(s), s}
	})
}

func escaped(s string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, `\u%04x`, unit)
	}
	return `"` + b.String() + `"`
}

func drawPrefix() *rapid.Generator[netip.Prefix] {
	return rapid.Custom(func(rt *rapid.T) netip.Prefix {
		size := rapid.SampledFrom([]int{4, 16}).Draw(rt, "size")
		addr, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), size, size).Draw(rt, "octets"))
		return netip.PrefixFrom(addr.Unmap(), rapid.IntRange(0, addr.Unmap().BitLen()).Draw(rt, "bits"))
	})
}

// canonPrefix writes an address with its length, as Go does.
func canonPrefix(s string) string {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()).String()
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return err.Error()
	}
	return p.String()
}
