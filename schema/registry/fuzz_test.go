package registry_test

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/oncestream/oncestream/schema"
)

// everyAvro has each type once, and nests in itself.
const everyAvro = `{"type":"record","name":"R","fields":[
	{"name":"n","type":["null","R"]},
	{"name":"s","type":"string"},
	{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":4}},
	{"name":"g","type":{"type":"bytes","logicalType":"big-decimal"}},
	{"name":"t","type":{"type":"long","logicalType":"timestamp-micros"}},
	{"name":"c","type":{"type":"int","logicalType":"time-millis"}},
	{"name":"f","type":["double","float","boolean","int"]},
	{"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}},
	{"name":"x","type":{"type":"fixed","name":"X","size":12,"logicalType":"duration"}},
	{"name":"m","type":{"type":"map","values":{"type":"array","items":["null","string","bytes"]}}}]}`

// everyProto has each type once, and nests in itself.
const everyProto = `syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
	import "google/protobuf/struct.proto"; enum E { A = 0; }
	message M { M n = 1; string s = 2; bytes b = 3; double f = 4; E e = 5; map<string, M> m = 6; repeated sint64 i = 7;
	google.protobuf.Timestamp t = 8; google.protobuf.Duration d = 9; google.protobuf.Value v = 10; message In { uint64 u = 1; } }`

// FuzzDecode reads any bytes as a framed value. It never panics; what it refuses
// is the record's own fault; what it takes is what its kind says: valid UTF-8,
// and JSON that another parser reads.
func FuzzDecode(f *testing.F) {
	fake := newFake(f)
	fake.seed(1, sr.TypeAvro, everyAvro)
	fake.seed(2, sr.TypeProtobuf, everyProto)
	r := open(f, fake)
	fields := schema.NewFields("n", "n.n.s", "s", "b", "d", "g", "t", "c", "f", "e", "x", "m", "m.a", "i", "v", "u")
	decoders := []schema.Decoder[schema.Row]{r.Avro(fields), r.Protobuf(fields), r.JSON(fields)}
	f.Add(frame(1, []byte("\x00\x02a\x02\x3c\x06\x02\x01\x04\x02\x02\x06\x02\x02\x07\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x02\x02a\x04\x00\x02\x02b\x00\x00")...))
	f.Add(append(frame(2, 0), append(sized(2, "x"), append(sized(8, varint(1, 9)), sized(6, sized(1, "a"))...)...)...))
	f.Add(append(frame(2, 4, 0, 0), varint(1, 1)...))
	f.Add(append(frame(3), `{"n":{"s":1}}`...))
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, decode := range decoders {
			row, err := decode(t.Context(), record(value))
			if err != nil {
				if _, ok := errors.AsType[*schema.Fault](err); !ok {
					t.Fatalf("no fault: %v", err)
				}
				if !utf8.ValidString(err.Error()) {
					t.Fatalf("the fault is no text: %q", err)
				}
				continue
			}
			for i, v := range row.Values {
				checkValue(t, fields.Paths()[i], v)
			}
		}
	})
}

func checkValue(t *testing.T, path string, v schema.Value) {
	t.Helper()
	switch v.Kind {
	case schema.Missing, schema.Null, schema.Bytes:
	case schema.String:
		if !utf8.Valid(v.Raw) {
			t.Fatalf("%s: %q is no text", path, v.Raw)
		}
	default:
		// encoding/json nests 10,000 levels deep, which is beyond the decoders.
		if !json.Valid(v.Raw) {
			t.Fatalf("%s: %q is no JSON", path, v.Raw)
		}
	}
}
