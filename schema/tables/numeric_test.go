package tables_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema/tables"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// literals draws numbers as people and programs write them, most of them near
// the borders of the digits to the base 10000.
func literals() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		text := rapid.SampledFrom([]string{"", "-", "+"}).Draw(t, "sign")
		whole := rapid.StringMatching(`0{0,5}[0-9]{0,12}0{0,9}`).Draw(t, "whole")
		fraction := rapid.StringMatching(`0{0,9}[0-9]{0,12}0{0,5}`).Draw(t, "fraction")
		if whole+fraction == "" {
			whole = "0"
		}
		text += whole
		if fraction != "" || rapid.Bool().Draw(t, "point") {
			text += "." + fraction
		}
		return text + rapid.StringMatching(`([eE][+-]?[0-9]{1,2})?`).Draw(t, "exponent")
	})
}

// sent returns what the server itself sends for the text.
func sent(ctx context.Context, conn *pgx.Conn, text string) (b []byte, err error) {
	err = conn.QueryRow(ctx, "select numeric_send($1::text::numeric)", text).Scan(&b)
	return b, err
}

func connect(t *testing.T) *pgx.Conn {
	t.Helper()
	db := tablestest.New(t, tablestest.Unmigrated())
	c, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Release)
	tables.RegisterTypes(c.Conn())
	return c.Conn()
}

// A text written in binary is byte for byte what the server makes of it, and
// the server's answer reads back as the same number with the same scale.
func TestNumericTextIsTheServers(t *testing.T) {
	conn := connect(t)
	rapid.Check(t, func(rt *rapid.T) {
		text := literals().Draw(rt, "text")
		want, err := sent(t.Context(), conn, text)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := tables.AppendNumericText([]byte("kept"), []byte(text))
		if err != nil || !bytes.Equal(got, append([]byte("kept"), want...)) {
			rt.Fatalf("%s: got %x, %v, want %x", text, got, err, want)
		}
		d, err := tables.DecodeNumeric(want)
		if err != nil {
			rt.Fatal(err)
		}
		again, err := tables.AppendNumeric(nil, d)
		if err != nil || !bytes.Equal(again, want) {
			rt.Fatalf("%s: decoded as %s and encoded as %x, %v, want %x", text, d, again, err, want)
		}
	})
}

// A decimal passed as a parameter is to the server what its text is, and comes
// back with the same coefficient and scale.
func TestDecimalsThroughPgx(t *testing.T) {
	conn := connect(t)
	rapid.Check(t, func(rt *rapid.T) {
		d, _, err := apd.NewFromString(literals().Draw(rt, "text"))
		if err != nil {
			rt.Fatal(err)
		}
		var text string
		var same bool
		var back apd.Decimal
		err = conn.QueryRow(t.Context(), "select $1::numeric::text, $1::numeric = $2::text::numeric, $1::numeric", d, d.Text('f')).
			Scan(&text, &same, &back)
		if err != nil {
			rt.Fatal(err)
		}
		if d.IsZero() { // numeric's has neither a sign nor an exponent
			d = apd.New(0, min(d.Exponent, 0))
		}
		want := d.Text('f')
		if !same || text != want || back.Text('f') != want {
			rt.Fatalf("%s: server says %s, came back as %s", want, text, back.Text('f'))
		}
	})
}

// The special values, null, arrays and values by value pass through pgx.
func TestSpecialDecimalsThroughPgx(t *testing.T) {
	conn := connect(t)
	for _, text := range []string{"NaN", "Infinity", "-Infinity"} {
		d, _, err := apd.NewFromString(text)
		if err != nil {
			t.Fatal(err)
		}
		var server string
		back := new(apd.Decimal)
		if err := conn.QueryRow(t.Context(), "select $1::numeric::text, $1::numeric", *d).Scan(&server, back); err != nil {
			t.Fatal(err)
		}
		if server != text || back.String() != text {
			t.Errorf("%s: server says %s, came back as %s", text, server, back)
		}
	}
	var null *apd.Decimal
	var list []*apd.Decimal
	err := conn.QueryRow(t.Context(), "select $1::numeric, $2::numeric[]", null, []*apd.Decimal{apd.New(150, -2), nil}).Scan(&null, &list)
	if err != nil || null != nil || len(list) != 2 || list[0].Text('f') != "1.50" || list[1] != nil {
		t.Errorf("null is %v, list is %v, %v", null, list, err)
	}
	var d apd.Decimal
	if err := conn.QueryRow(t.Context(), "select null::numeric").Scan(&d); err == nil {
		t.Error("a null was scanned into a decimal that cannot be null")
	}
	if _, err := conn.Exec(t.Context(), "select $1::numeric", apd.New(1, -16384)); !errors.Is(err, tables.ErrNumericRange) {
		t.Errorf("a decimal that does not fit: %v", err)
	}
}

// What the server takes at the edge of numeric is taken, and what it refuses is
// refused for the reason that it gives.
func TestNumericEdges(t *testing.T) {
	conn := connect(t)
	for text, want := range map[string]error{
		"1e131071":                        nil,
		"-9e131071":                       nil,
		"1e131072":                        tables.ErrNumericRange,
		"9" + strings.Repeat("9", 131071): nil,
		"9" + strings.Repeat("9", 131072): tables.ErrNumericRange,
		"0" + strings.Repeat("0", 140000): nil,
		"1e-16383":                        nil,
		"1e-16384":                        tables.ErrNumericRange,
		"0e-16384":                        tables.ErrNumericRange,
		"0." + strings.Repeat("1", 16383): nil,
		"0." + strings.Repeat("1", 16384): tables.ErrNumericRange,
		"1." + strings.Repeat("0", 16384): tables.ErrNumericRange,
		"0e131072":                        nil,
		"1e99999999999999999999":          tables.ErrNumericRange,
		"1e-99999999999999999999":         tables.ErrNumericRange,
		"nan":                             nil,
		"-inf":                            nil,
		"+Infinity":                       nil,
		"-0.00":                           nil,
		"":                                tables.ErrNotNumeric,
		".":                               tables.ErrNotNumeric,
		"-":                               tables.ErrNotNumeric,
		"1e":                              tables.ErrNotNumeric,
		"1e+":                             tables.ErrNotNumeric,
		"1.2.3":                           tables.ErrNotNumeric,
		"--1":                             tables.ErrNotNumeric,
		"-+inf":                           tables.ErrNotNumeric,
		"-nan":                            tables.ErrNotNumeric,
		"12a":                             tables.ErrNotNumeric,
		"１２":                              tables.ErrNotNumeric,
		strings.Repeat("x", 1000):         tables.ErrNotNumeric,
	} {
		name := text[:min(len(text), 20)]
		got, err := tables.AppendNumericText(nil, []byte(text))
		if !errors.Is(err, want) || err != nil && (len(got) > 0 || len(err.Error()) > 200) {
			t.Errorf("%q: got %d bytes, %v, want %v", name, len(got), err, want)
		}
		server, err := sent(t.Context(), conn, text)
		if strings.Contains(strings.ToLower(text), "inf") {
			server = got // with these it sends a scale that means nothing
		}
		if (err == nil) != (want == nil) || !bytes.Equal(server, got) {
			t.Errorf("%q: the server says %x, %v, want %x", name, server[:min(len(server), 20)], err, got[:min(len(got), 20)])
		}
		if want == nil {
			var there bool
			d, err := tables.DecodeNumeric(got)
			if err != nil {
				t.Fatal(err)
			}
			// The server reads what was written: numeric_recv has limits of its own.
			if err := conn.QueryRow(t.Context(), "select $1::numeric = $2::text::numeric", d, text).Scan(&there); err != nil || !there {
				t.Errorf("%q: sent in binary: %v, %v", name, there, err)
			}
		}
	}
}

// Spaces are not part of a number here, though the server forgives them.
func TestNumericTextTakesNoSpaces(t *testing.T) {
	for _, text := range []string{" 1", "1 ", "1_000", "0x10"} {
		if _, err := tables.AppendNumericText(nil, []byte(text)); !errors.Is(err, tables.ErrNotNumeric) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Bytes that are no numeric are an error and never a panic or a wrong number.
func FuzzDecodeNumeric(f *testing.F) {
	for _, text := range []string{"0", "1.50", "-12345.6789", "1e40", "NaN", "inf"} {
		b, err := tables.AppendNumericText(nil, []byte(text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0xff, 0xff}) // a digit above 9999
	f.Add([]byte{0, 1, 0xff, 0xff, 0, 0, 0, 1, 0, 1}) // digits beyond the scale
	f.Add([]byte{0, 0, 0, 0, 0x12, 0x34, 0, 0})       // no such sign
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := tables.DecodeNumeric(src)
		if err != nil {
			return
		}
		b, err := tables.AppendNumeric(nil, d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := tables.DecodeNumeric(b)
		if err != nil || again.CmpTotal(d) != 0 {
			t.Errorf("%x: %s became %s, %v", src, d, again, err)
		}
	})
}

// Malformed bytes are refused, each for its reason.
func TestDecodeNumericRefuses(t *testing.T) {
	for want, src := range map[string][]byte{
		"no header":         {0, 1},
		"digits in":         {0, 2, 0, 0, 0, 0, 0, 0, 0, 1},
		"to the base 10000": {0, 1, 0, 0, 0, 0, 0, 0, 0xff, 0xff},
		"beyond the scale":  {0, 1, 0xff, 0xff, 0, 0, 0, 1, 0, 1},
		"no such sign":      {0, 0, 0, 0, 0x12, 0x34, 0, 0},
		"scale 16384":       {0, 0, 0, 0, 0, 0, 0x40, 0},
	} {
		if d, err := tables.DecodeNumeric(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, d, err)
		}
	}
}
