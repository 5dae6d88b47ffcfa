package tables_test

import (
	"testing"

	"github.com/cockroachdb/apd/v3"

	"github.com/oncestream/oncestream/schema/tables"
)

var amounts = map[string]string{
	"cents": "1234567.89",
	"long":  "-98765432109876543210987654321.123456789012345678",
	"power": "1.23E+40",
}

// A decimal of up to 19 digits is written without an allocation.
func BenchmarkAppendNumeric(b *testing.B) {
	for name, text := range amounts {
		b.Run(name, func(b *testing.B) {
			d, _, err := apd.NewFromString(text)
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]byte, 0, 64)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tables.AppendNumeric(dst, d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A text is written without an allocation.
func BenchmarkAppendNumericText(b *testing.B) {
	for name, text := range amounts {
		b.Run(name, func(b *testing.B) {
			dst, src := make([]byte, 0, 64), []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tables.AppendNumericText(dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The way over a decimal, which AppendNumericText saves.
func BenchmarkParseAndAppendNumeric(b *testing.B) {
	dst := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		d, _, err := apd.NewFromString(amounts["cents"])
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tables.AppendNumeric(dst, d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeNumeric(b *testing.B) {
	for name, text := range amounts {
		b.Run(name, func(b *testing.B) {
			src, err := tables.AppendNumericText(nil, []byte(text))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tables.DecodeNumeric(src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
