package registry_test

import (
	"testing"
	"time"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/oncestream/oncestream/schema"
)

// BenchmarkDecode shows the cost of a framed payment of seven fields, all of
// them mapped, from Avro, Protobuf and JSON.
func BenchmarkDecode(b *testing.B) {
	f := newFake(b)
	f.seed(1, sr.TypeAvro, paymentAvro)
	f.seed(2, sr.TypeProtobuf, paymentProto)
	r := open(b, f)
	fields := schema.NewFields("payment_id", "account", "amount", "currency", "booked_at", "settled", "meta.channel")
	for _, c := range []struct {
		name   string
		decode schema.Decoder[schema.Row]
		value  []byte
	}{
		{"avro", r.Avro(fields), avroPayment(b)},
		{"protobuf", r.Protobuf(fields), protoPayment()},
		{"json", r.JSON(fields), append(frame(3), jsonPayment...)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.value)))
			r := record(c.value)
			for b.Loop() {
				if row, err := c.decode(b.Context(), r); err != nil || !row.Values[6].Present() {
					b.Fatal(row, err)
				}
			}
		})
	}
}

const (
	paymentAvro = `{"type":"record","name":"Payment","fields":[
		{"name":"payment_id","type":"string"},{"name":"account","type":"string"},
		{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":18,"scale":2}},
		{"name":"currency","type":"string"},
		{"name":"booked_at","type":{"type":"long","logicalType":"timestamp-micros"}},
		{"name":"settled","type":"boolean"},
		{"name":"meta","type":{"type":"record","name":"Meta","fields":[{"name":"channel","type":["null","string"]}]}}]}`
	paymentProto = `syntax = "proto3"; import "google/protobuf/timestamp.proto";
		message Meta { string channel = 1; }
		message Payment { string payment_id = 1; string account = 2; string amount = 3; string currency = 4;
		google.protobuf.Timestamp booked_at = 5; bool settled = 6; Meta meta = 7; }`
	jsonPayment = `{"payment_id":"0190f3c2-7a1b-7c33-9d4e-5f60718293a4","account":"acc-4711",` +
		`"amount":12345.67,"currency":"EUR","booked_at":"2026-11-30T22:06:50.123456Z",` +
		`"settled":true,"meta":{"channel":"web"}}`
)

func avroPayment(b *testing.B) []byte {
	body, err := avro.MustParse(paymentAvro).Encode(map[string]any{
		"payment_id": "0190f3c2-7a1b-7c33-9d4e-5f60718293a4", "account": "acc-4711", "amount": "12345.67", "currency": "EUR",
		"booked_at": time.Date(2026, 11, 30, 22, 6, 50, 123456000, time.UTC), "settled": true, "meta": map[string]any{"channel": "web"},
	})
	if err != nil {
		b.Fatal(err)
	}
	return append(frame(1), body...)
}

func protoPayment() []byte {
	v := frame(2, 2, 2) // the second message
	for _, f := range [][]byte{
		sized(1, "0190f3c2-7a1b-7c33-9d4e-5f60718293a4"), sized(2, "acc-4711"), sized(3, "12345.67"), sized(4, "EUR"),
		sized(5, append(varint(1, 1796076410), varint(2, 123456000)...)), varint(6, 1), sized(7, sized(1, "web")),
	} {
		v = append(v, f...)
	}
	return v
}
