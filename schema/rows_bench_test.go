package schema

import (
	"encoding/json"
	"testing"
)

// payment is a record of the size and shape that the hot path is built for.
const payment = `{"payment_id":"0190f3c2-7a1b-7c33-9d4e-5f60718293a4","account":"acc-4711",` +
	`"amount":12345.67,"currency":"EUR","booked_at":"2026-11-30T22:06:50.123456Z",` +
	`"settled":true,"meta":{"channel":"web"}}`

// BenchmarkRows shows the cost of a row of seven fields, and its ratio to the
// obvious way, encoding/json into a map, measured in the same run.
func BenchmarkRows(b *testing.B) {
	fields := NewFields("payment_id", "account", "amount", "currency", "booked_at", "settled", "meta.channel")
	decode := Rows(fields)
	r := &Record{Value: []byte(payment)}
	var rows, maps testing.BenchmarkResult
	b.Run("rows", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(payment)))
		for b.Loop() {
			if _, err := decode(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
		rows = testing.BenchmarkResult{N: b.N, T: b.Elapsed()}
	})
	b.Run("map", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(payment)))
		for b.Loop() {
			var m map[string]any
			if err := json.Unmarshal(r.Value, &m); err != nil {
				b.Fatal(err)
			}
		}
		maps = testing.BenchmarkResult{N: b.N, T: b.Elapsed()}
		if rows.N > 0 {
			b.ReportMetric(float64(maps.NsPerOp())/float64(rows.NsPerOp()), "map/rows")
		}
	})
}

// BenchmarkKey shows the cost of a key: of one field, of three, and of a UUID.
func BenchmarkKey(b *testing.B) {
	r := &Record{Value: []byte(payment)}
	body, err := Rows(NewFields("payment_id", "account", "booked_at"))(b.Context(), r)
	if err != nil {
		b.Fatal(err)
	}
	id := FieldPart("payment_id")
	for name, key := range map[string]KeyFunc[Row]{
		"field": ByField("payment_id"), "uuid": AsUUID(id), "three": Join(id, FieldPart("account"), FieldPart("booked_at")),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := key(Message[Row]{Record: r, Body: body}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
