package registry_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oncestream/oncestream/schema"
)

// protoOf returns the decoder of messages of a schema under the id 1. The first
// message of the schema's text is M.
func protoOf(tb testing.TB, text string, paths ...string) schema.Decoder[schema.Row] {
	tb.Helper()
	f := newFake(tb)
	f.seed(1, sr.TypeProtobuf, text)
	return open(tb, f).Protobuf(schema.NewFields(paths...))
}

// message frames the fields of a message M under the id 1.
func message(fields ...[]byte) []byte {
	b := frame(1, 0)
	for _, f := range fields {
		b = append(b, f...)
	}
	return b
}

func varint(n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
}

func sized[T ~string | ~[]byte](n protowire.Number, v T) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), string(v))
}

// The message index chooses the type: in its short form, in its long form, of a
// second and of a nested message. An index that does not exist is a fault.
func TestProtobufMessageIndex(t *testing.T) {
	f := newFake(t)
	f.seed(2601, sr.TypeProtobuf, `syntax = "proto3"; package t;
		message A { int64 id = 1; message Inner { int64 id = 1; } }
		message B { int64 id = 1; string s = 2; }`)
	decode := open(t, f).Protobuf(schema.NewFields("id", "s"))
	for value, want := range map[string]string{
		"AAAACikACAE=":         "1",
		"AAAACikCAAgC":         "2",
		"AAAACikCAggDEgJoaQ==": "3",
		"AAAACikEAAAIBA==":     "4",
	} {
		wantField(t, read(t, decode, unbase64(t, value)), "id", schema.Number, want)
	}
	wantField(t, read(t, decode, unbase64(t, "AAAACikCAggDEgJoaQ==")), "s", schema.String, "hi")
	wantFault(t, decode, unbase64(t, "AAAACikCEggF"), "byte 5", "no message of index [9]")
	for _, index := range []string{
		"",             // none at all
		"\x01",         // a length below zero
		"\x02",         // cut short
		"\x02\x01",     // a place below zero
		"\x06\x00\x00", // one place too few
		"\x04\x00\x04", // a nested type that there is not
		"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	} {
		wantFault(t, decode, frame(2601, []byte(index)...), "byte 5", "index")
	}
}

// Types of map entries, which the compiler adds, do not count in the index: the
// schema's text does not have them.
func TestProtobufIndexPassesMapEntries(t *testing.T) {
	decode := protoOf(t, `syntax = "proto3"; message M { map<string, int32> m = 1; message In { int64 id = 1; } }`, "id")
	wantField(t, read(t, decode, append(frame(1, 4, 0, 0), varint(1, 5)...)), "id", schema.Number, "5")
}

// The greatest unsigned integer keeps its digits.
func TestProtobufUint64(t *testing.T) {
	f := newFake(t)
	f.seed(1301, sr.TypeProtobuf, `syntax = "proto3"; message M { uint64 n = 1; }`)
	decode := open(t, f).Protobuf(schema.NewFields("n"))
	wantField(t, read(t, decode, unbase64(t, "AAAABRUACP///////////wE=")), "n", schema.Number, "18446744073709551615")
}

// Text that is no UTF-8 is a fault and never a replacement character: in proto3,
// where the library checks it, in proto2, where it does not, and in a map's keys.
func TestProtobufInvalidText(t *testing.T) {
	f := newFake(t)
	f.seed(4001, sr.TypeProtobuf, `syntax = "proto3"; package t; message B { int64 id = 1; string s = 2; }`)
	wantFault(t, open(t, f).Protobuf(schema.NewFields("id", "s")), unbase64(t, "AAAAD6EACAQSAv/+"), "t.B.s", "invalid UTF-8")

	proto2 := protoOf(t, `syntax = "proto2"; message M { optional string s = 1; map<string, int32> m = 2; repeated M r = 3; }`, "s", "m", "r")
	wantFault(t, proto2, message(sized(1, "a\xff")), `in "s": `, "byte 1", "invalid UTF-8")
	wantFault(t, proto2, message(sized(2, sized(1, "\xff"))), `in "m": `, "a name", "invalid UTF-8")
	wantFault(t, proto2, message(sized(3, sized(1, "\xff"))), `in "r": `, "invalid UTF-8")
}

// Messages nested 10,000 deep are a fault and no overflow; 300 deep are read.
func TestProtobufDepth(t *testing.T) {
	decode := protoOf(t, `syntax = "proto3"; message M { M n = 1; }`, "n", "n.n.n.n")
	deep := func(levels int) []byte {
		var m []byte
		for range levels {
			m = sized(1, m)
		}
		return message(m)
	}
	wantFault(t, decode, deep(10_000), "depth")
	row := read(t, decode, deep(4))
	wantField(t, row, "n", schema.Object, `{"n":{"n":{"n":{}}}}`)
	wantField(t, row, "n.n.n.n", schema.Object, `{}`)
	read(t, decode, deep(300))
}

// Each type of proto3, once set and once left out. Where Protobuf cannot tell
// absent from default, the value is the default; where it can, it is Missing.
func TestProtobufTypes(t *testing.T) {
	for _, c := range []struct {
		field  string
		body   []byte
		kind   schema.Kind
		want   string
		absent string // "" for Missing
	}{
		{"bool v = 1;", varint(1, 1), schema.Bool, "true", "false"},
		{"int32 v = 1;", varint(1, 1<<64-1), schema.Number, "-1", "0"},
		{"int64 v = 1;", varint(1, 1<<63), schema.Number, "-9223372036854775808", "0"},
		{"uint32 v = 1;", varint(1, 1<<32-1), schema.Number, "4294967295", "0"},
		{"sint64 v = 1;", varint(1, 1<<64-1), schema.Number, "-9223372036854775808", "0"},
		{"fixed64 v = 1;", protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 1<<64-1), schema.Number, "18446744073709551615", "0"},
		{"sfixed32 v = 1;", protowire.AppendFixed32(protowire.AppendTag(nil, 1, protowire.Fixed32Type), 1<<31), schema.Number, "-2147483648", "0"},
		{"float v = 1;", protowire.AppendFixed32(protowire.AppendTag(nil, 1, protowire.Fixed32Type), 0x3dcccccd), schema.Number, "0.1", "0"},
		{"double v = 1;", protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 0x7ff0000000000000), schema.String, "Infinity", "0"},
		{"string v = 1;", sized(1, "Zoë"), schema.String, "Zoë", ""},
		{"bytes v = 1;", sized(1, "\xff\x00"), schema.Bytes, "\xff\x00", ""},
		{"E v = 1;", varint(1, 1), schema.String, "B", "A"},
		{"E v = 1;", varint(1, 7), schema.Number, "7", "A"},
		{"optional int32 v = 1;", varint(1, 0), schema.Number, "0", "missing"},
		{"oneof o { string v = 1; string w = 2; }", sized(1, ""), schema.String, "", "missing"},
		{"repeated int64 v = 1;", sized(1, "\x01\x02"), schema.Array, "[1,2]", "[]"},
		{"map<int32, bytes> v = 1;", append(sized(1, append(varint(1, 2), sized(2, "\xff")...)), sized(1, varint(1, 10))...), schema.Object, `{"10":"","2":"/w=="}`, "{}"},
		{"M v = 1;", sized(1, ""), schema.Object, "{}", "missing"},
		{"In v = 1;", sized(1, sized(2, "\"")), schema.Object, `{"i":0,"s":"\"","e":"A","r":[]}`, "missing"},
		{"google.protobuf.Timestamp v = 1;", sized(1, append(varint(1, 62135596800), varint(2, 1000)...)), schema.String, "3939-01-01T00:00:00.000001Z", "missing"},
		{"google.protobuf.Duration v = 1;", sized(1, append(varint(1, 1<<64-3), varint(2, 1<<64-500_000_000)...)), schema.String, "PT-3.5S", "missing"},
		{"google.protobuf.UInt64Value v = 1;", sized(1, varint(1, 1<<64-1)), schema.Number, "18446744073709551615", "missing"},
		{"google.protobuf.BytesValue v = 1;", sized(1, ""), schema.Bytes, "", "missing"},
		{"google.protobuf.Value v = 1;", sized(1, varint(1, 0)), schema.Null, "", "missing"},
		{"google.protobuf.Value v = 1;", sized(1, ""), schema.Null, "", "missing"},
		{"google.protobuf.Struct v = 1;", sized(1, sized(1, append(sized(1, "k"), sized(2, varint(4, 1))...))), schema.Object, `{"k":true}`, "missing"},
		{"google.protobuf.ListValue v = 1;", sized(1, sized(1, sized(3, "x"))), schema.Array, `["x"]`, "missing"},
		{"repeated google.protobuf.Timestamp v = 1;", sized(1, ""), schema.Array, `["1970-01-01T00:00:00Z"]`, "[]"},
	} {
		t.Run(c.field, func(t *testing.T) {
			decode := protoOf(t, `syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
				import "google/protobuf/wrappers.proto"; import "google/protobuf/struct.proto";
				enum E { A = 0; B = 1; } message M { `+c.field+` }
				message In { int32 i = 1; string s = 2; E e = 3; repeated int32 r = 4; optional int32 o = 5; }`, "v")
			row := read(t, decode, message(c.body))
			wantField(t, row, "v", c.kind, c.want)
			if v := read(t, decode, message()).Get("v"); c.absent == "missing" && v.Kind != schema.Missing || c.absent != "missing" && (v.Kind == schema.Missing || string(v.Raw) != c.absent) {
				t.Errorf("absent: kind %d %q, want %q", v.Kind, v.Raw, c.absent)
			}
		})
	}
}

// Timestamps and durations beyond what their types allow are faults.
func TestProtobufTimeRange(t *testing.T) {
	decode := protoOf(t, `syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
		message M { google.protobuf.Timestamp t = 1; google.protobuf.Duration d = 2; }`, "t", "d")
	for _, body := range [][]byte{varint(1, 253402300800), varint(1, -62135596801&(1<<64-1)), varint(2, 1e9), varint(2, 1<<64-1)} {
		wantFault(t, decode, message(sized(1, body)), `in "t": `, "no such Timestamp")
	}
	opposite := append(varint(1, 1), varint(2, 1<<64-1)...)
	for _, body := range [][]byte{opposite, varint(1, 315576000001), varint(1, 1<<63), varint(2, 1e9)} {
		wantFault(t, decode, message(sized(2, body)), `in "d": `, "no such Duration")
	}
}

// proto2 tells absent from default for every field, and insists on what is required.
func TestProtobufProto2(t *testing.T) {
	decode := protoOf(t, `syntax = "proto2"; message M { required int32 r = 1; optional int32 o = 2 [default = 7]; }`, "o")
	wantField(t, read(t, decode, message(varint(1, 1))), "o", schema.Missing, "")
	wantField(t, read(t, decode, message(varint(1, 1), varint(2, 7))), "o", schema.Number, "7")
	wantFault(t, decode, message(varint(2, 1)), "required")
}

// Paths lead into messages and maps with string keys, by the schema's names.
// Fields that the schema does not have are passed over.
func TestProtobufPaths(t *testing.T) {
	decode := protoOf(t, `syntax = "proto3"; message M { M in_ner = 1; map<string, M> m = 2; int32 n = 3; repeated M l = 4; map<int32, M> k = 5; }`,
		"in_ner.n", "in_ner", "inNer.n", "m.a.n", "m.b.n", "l.n", "k.1.n")
	row := read(t, decode, message(sized(1, varint(3, 7)), sized(2, append(sized(1, "a"), sized(2, varint(3, 8))...)), varint(99, 1)))
	wantField(t, row, "in_ner.n", schema.Number, "7")
	wantField(t, row, "in_ner", schema.Object, `{"m":{},"n":7,"l":[],"k":{}}`)
	wantField(t, row, "m.a.n", schema.Number, "8")
	for _, path := range []string{"inNer.n", "m.b.n", "l.n", "k.1.n"} {
		wantField(t, row, path, schema.Missing, "")
	}
}

// Imports come from the registry, through several levels; Google's own need no
// reference, and one that the registry has under such a name does not replace it.
func TestProtobufReferences(t *testing.T) {
	f := newFake(t)
	money := sr.SchemaReference{Name: "t/money.proto", Subject: "money", Version: 1}
	stamp := sr.SchemaReference{Name: "google/protobuf/timestamp.proto", Subject: "stamp", Version: 1}
	f.SeedSchema("money", 1, 1, sr.Schema{Type: sr.TypeProtobuf, Schema: `syntax = "proto3"; package t; message Money { int64 cents = 1; }`})
	f.SeedSchema("stamp", 1, 2, sr.Schema{Type: sr.TypeProtobuf, Schema: `syntax = "proto3"; package google.protobuf; message Timestamp { string s = 1; }`})
	f.SeedSchema("line", 1, 3, sr.Schema{Type: sr.TypeProtobuf, References: []sr.SchemaReference{money}, Schema: `syntax = "proto3"; package t; import "t/money.proto"; message Line { Money price = 1; }`})
	line := sr.SchemaReference{Name: "t/line.proto", Subject: "line", Version: 1}
	f.SeedSchema("order", 1, 4, sr.Schema{Type: sr.TypeProtobuf, References: []sr.SchemaReference{line, stamp}, Schema: `syntax = "proto3"; package t;
		import "t/line.proto"; import "google/protobuf/timestamp.proto"; message Order { Line line = 1; google.protobuf.Timestamp at = 2; }`})
	decode := open(t, f).Protobuf(schema.NewFields("line.price.cents", "at"))
	row := read(t, decode, append(frame(4, 0), append(sized(1, sized(1, varint(1, 99))), sized(2, varint(1, 1))...)...))
	wantField(t, row, "line.price.cents", schema.Number, "99")
	wantField(t, row, "at", schema.String, "1970-01-01T00:00:01Z")
}

// What is cut short, or is no message at all, is a fault that names the type.
func TestProtobufGarbage(t *testing.T) {
	decode := protoOf(t, `syntax = "proto3"; package p; message M { string s = 1; }`, "s")
	for _, body := range []string{"\x0a\x05x", "\x0a", "\xff\xff", "\x07"} {
		wantFault(t, decode, message([]byte(body)), "protobuf p.M", "schema id 1")
	}
}
