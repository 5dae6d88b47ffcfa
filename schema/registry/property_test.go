package registry_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/apd/v3"
	"github.com/google/uuid"
	"github.com/twmb/avro"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/registry"
)

// encoded returns the body of a record of one field that the library writes.
func encoded(t *rapid.T, fieldType string, v any) []byte {
	b, err := avro.MustParse(recordOf(fieldType)).Encode(map[string]any{"v": v})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// back decodes what encoded has written.
func back(t *rapid.T, decode schema.Decoder[schema.Row], body []byte) schema.Value {
	row, err := decode(t.Context(), record(body))
	if err != nil {
		t.Fatal(err)
	}
	return row.Get("v")
}

// Whatever instant the library's encoder writes is read as a text that Go's own
// parser takes back to the same instant, in each of the six logical types.
func TestAvroTimestampsRoundTrip(t *testing.T) {
	first, last := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
	for unit, name := range map[time.Duration]string{time.Millisecond: "millis", time.Microsecond: "micros", time.Nanosecond: "nanos"} {
		for prefix, layout := range map[string]string{"": time.RFC3339Nano, "local-": "2006-01-02T15:04:05.999999999"} {
			kind := fmt.Sprintf(`{"type":"long","logicalType":"%stimestamp-%s"}`, prefix, name)
			decode := avroOf(t, recordOf(kind), "v")
			rapid.Check(t, func(t *rapid.T) {
				low, high := first, last
				if unit == time.Nanosecond { // 64 bits of nanoseconds end in 2262
					low, high = -9e9, 9e9
				}
				want := time.Unix(rapid.Int64Range(low, high).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
				want = want.Add(-time.Duration(want.Nanosecond()) % unit)
				v := back(t, decode, encoded(t, kind, want))
				if got, err := time.Parse(layout, string(v.Raw)); err != nil || !got.Equal(want) || v.Kind != schema.String {
					t.Fatalf("%s: %q is %v, want %v (%v)", kind, v.Raw, got, want, err)
				}
			})
		}
	}
}

// Dates and times of day, the same way.
func TestAvroDatesRoundTrip(t *testing.T) {
	date := avroOf(t, recordOf(`{"type":"int","logicalType":"date"}`), "v")
	clock := avroOf(t, recordOf(`{"type":"long","logicalType":"time-micros"}`), "v")
	milli := avroOf(t, recordOf(`{"type":"int","logicalType":"time-millis"}`), "v")
	rapid.Check(t, func(t *rapid.T) {
		want := time.Unix(86400*rapid.Int64Range(-719162, 2932896).Draw(t, "day"), 0).UTC()
		v := back(t, date, encoded(t, `{"type":"int","logicalType":"date"}`, want))
		if string(v.Raw) != want.Format(time.DateOnly) {
			t.Fatalf("%q, want %v", v.Raw, want)
		}
		micros := rapid.Int64Range(0, 86_399_999_999).Draw(t, "micros")
		v = back(t, clock, encoded(t, `"long"`, micros))
		if got, err := time.Parse("15:04:05.999999", string(v.Raw)); err != nil || got.Sub(got.Truncate(24*time.Hour)).Microseconds() != micros {
			t.Fatalf("%q, want %d µs", v.Raw, micros)
		}
		v = back(t, milli, encoded(t, `"int"`, int32(micros/1000)))
		if got, err := time.Parse("15:04:05.999", string(v.Raw)); err != nil || got.Sub(got.Truncate(24*time.Hour)).Milliseconds() != micros/1000 {
			t.Fatalf("%q, want %d ms", v.Raw, micros/1000)
		}
	})
}

// A decimal of any digits and scale comes back as the same decimal, with all
// the digits of its scale, whether its bytes are few, many or fixed.
func TestAvroDecimalsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[1-9][0-9]{0,60}|0`).Draw(t, "digits")
		scale := rapid.IntRange(0, 61).Draw(t, "scale")
		unscaled, _ := new(big.Int).SetString(digits, 10)
		if rapid.Bool().Draw(t, "negative") {
			unscaled.Neg(unscaled)
		}
		base := rapid.SampledFrom([]string{`"type":"bytes"`, `"type":"fixed","name":"F","size":30`}).Draw(t, "base")
		kind := fmt.Sprintf(`{%s,"logicalType":"decimal","precision":61,"scale":%d}`, base, scale)
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
		v := back(t, avroOfRapid(t, recordOf(kind)), encoded(t, kind, new(big.Rat).SetFrac(unscaled, power)))
		want := apd.NewWithBigInt(new(apd.BigInt).SetMathBigInt(unscaled), int32(-scale)).Text('f')
		if v.Kind != schema.Number || string(v.Raw) != want {
			t.Fatalf("%q, want %q", v.Raw, want)
		}
	})
}

// Integers, floats, texts, bytes and UUIDs come back as they were.
func TestAvroScalarsRoundTrip(t *testing.T) {
	decoders := map[string]schema.Decoder[schema.Row]{}
	for _, kind := range []string{`"long"`, `"int"`, `"double"`, `"float"`, `"string"`, `"bytes"`, `{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}`} {
		decoders[kind] = avroOf(t, recordOf(kind), "v")
	}
	same := func(t *rapid.T, kind string, sent any, want string) {
		if v := back(t, decoders[kind], encoded(t, kind, sent)); string(v.Raw) != want {
			t.Fatalf("%s: %q, want %q", kind, v.Raw, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		long, double := rapid.Int64().Draw(t, "long"), rapid.Float64().Draw(t, "double")
		same(t, `"long"`, long, strconv.FormatInt(long, 10))
		same(t, `"int"`, int32(long), strconv.FormatInt(int64(int32(long)), 10))
		same(t, `"double"`, double, strconv.FormatFloat(double, 'g', -1, 64))
		same(t, `"float"`, float32(long), strconv.FormatFloat(float64(float32(long)), 'g', -1, 32))
		word := strings.ToValidUTF8(rapid.String().Draw(t, "string"), "?")
		same(t, `"string"`, word, word)
		raw := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		same(t, `"bytes"`, raw, string(raw))
		id := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
		same(t, `{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}`, [16]byte(id), id.String())
	})
}

// avroOfRapid is avroOf within a check.
func avroOfRapid(t *rapid.T, text string) schema.Decoder[schema.Row] {
	decode, err := registry.Avro(text, schema.NewFields("v"))
	if err != nil {
		t.Fatal(err)
	}
	return decode
}

// Protobuf's integers, floats, texts and timestamps, written with protowire.
func TestProtobufRoundTrip(t *testing.T) {
	decode := protoOf(t, `syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { int64 i = 1; uint64 u = 2; sint64 z = 3;
		string s = 4; bytes b = 5; google.protobuf.Timestamp t = 6; repeated string r = 7; }`, "i", "u", "z", "s", "b", "t", "r")
	rapid.Check(t, func(t *rapid.T) {
		n, word := rapid.Uint64().Draw(t, "n"), strings.ToValidUTF8(rapid.String().Draw(t, "s"), "?")
		at := time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		stamp := append(varint(1, uint64(at.Unix())), varint(2, uint64(at.Nanosecond()))...)
		row, err := decode(t.Context(), record(message(varint(1, n), varint(2, n), varint(3, protowire.EncodeZigZag(int64(n))),
			sized(4, word), sized(5, word), sized(6, stamp), sized(7, word))))
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		if err := json.Unmarshal(row.Get("r").Raw, &list); err != nil || len(list) != 1 || list[0] != word {
			t.Fatalf("r: %s, want %q (%v)", row.Get("r").Raw, word, err)
		}
		for path, want := range map[string]string{
			"i": strconv.FormatInt(int64(n), 10), "u": strconv.FormatUint(n, 10), "z": strconv.FormatInt(int64(n), 10),
			"s": word, "b": word, "t": at.Format(time.RFC3339Nano),
		} {
			if got := string(row.Get(path).Raw); got != want {
				t.Fatalf("%s: %q, want %q", path, got, want)
			}
		}
	})
}
