package sinks

import (
	"errors"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables"
)

// FuzzDecimal proves against two other readers of literals, apd and that of
// schema/tables, that a literal is taken apart as what it is.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0", "-0.00", "1.50", "1e3", "-9223372036854775808", "9223372036854775808", "12345678901234567890.5", ".5", "5.", "1e", "+1", "1..2", "", "e5", "0e9", "100000000000000000000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := scanDecimal([]byte(s))
		_, err := tables.AppendNumericText(nil, []byte(s))
		if special := err == nil && !ok; special {
			if want, _, _ := apd.NewFromString(s); want.Form == apd.Finite {
				t.Fatalf("%q is a number and was refused", s)
			}
			return
		}
		if ok == errors.Is(err, tables.ErrNotNumeric) {
			t.Fatalf("%q: ok is %v, schema/tables says %v", s, ok, err)
		}
		if !ok || err != nil || d.high > 999 || d.last < -999 {
			return // apd takes seconds over a number of 100,000 digits
		}
		want, _, err := apd.NewFromString(s)
		if err != nil {
			t.Fatal(err)
		}
		checkInt64(t, s, &d, want)
		checkAmount(t, s, &d, want)
	})
}

func checkInt64(t *testing.T, s string, d *decimal, want *apd.Decimal) {
	t.Helper()
	n, ok := d.int64()
	var whole apd.Decimal
	whole.Reduce(want)
	i, err := whole.Int64()
	if ok != (err == nil) || ok && n != i {
		t.Fatalf("%q: got %d, %v; want %d, %v", s, n, ok, i, err)
	}
}

func checkAmount(t *testing.T, s string, d *decimal, want *apd.Decimal) {
	t.Helper()
	var sum amount
	sum.add([]byte(s), d)
	got, _, err := apd.NewFromString(string(sum.appendText(nil)))
	if err != nil || got.Cmp(want) != 0 {
		t.Fatalf("%q: the sum is %v, %v", s, got, err)
	}
}

// Proves that a sum is exact where it crosses the limits of 64 bits in either
// direction, and where scales differ.
func TestAmountCrossesLimits(t *testing.T) {
	exact := apd.BaseContext.WithPrecision(200)
	exact.Traps |= apd.Inexact | apd.Rounded
	literal := rapid.SampledFrom([]string{
		"9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775807", "1", "-1", "0.1", "-0.0001",
		"922337203685477580.7", "922337203685477580.8", "-922337203685477580.8", "1e18", "-1e19", "0.000000000000000001", "0.00", "99999999999999999999",
	})
	rapid.Check(t, func(rt *rapid.T) {
		var sum amount
		var want apd.Decimal
		for _, s := range rapid.SliceOfN(literal, 1, 10).Draw(rt, "literals") {
			d, ok := scanDecimal([]byte(s))
			if !ok {
				rt.Fatal(s)
			}
			sum.add([]byte(s), &d)
			summand, _, err := apd.NewFromString(s)
			if err != nil {
				rt.Fatal(err)
			}
			if _, err := exact.Add(&want, &want, summand); err != nil {
				rt.Fatal(err)
			}
		}
		got, _, err := apd.NewFromString(string(sum.appendText(nil)))
		if err != nil || got.Cmp(&want) != 0 {
			rt.Fatalf("got %v (%v), want %v", got, err, &want)
		}
	})
}

// Proves that no text makes a reader of times panic, and that what it takes has
// the date it says.
func FuzzStamp(f *testing.F) {
	f.Add("2025-03-05T04:33:45.844195Z")
	f.Add("2025-03-05 04:33:45+0130")
	f.Add("2025-02-30")
	f.Fuzz(func(t *testing.T, s string) {
		c := &TableColumn{Type: "date", BaseOID: 1082, Mod: -1}
		out, err := encodeDate(nil, c, schema.Value{Kind: schema.String, Raw: []byte(s)})
		if err == nil && len(out) != 4 {
			t.Fatalf("%q: %d bytes", s, len(out))
		}
	})
}
