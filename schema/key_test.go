package schema_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
)

// bytesMessage is a message whose body does not matter.
func bytesMessage(r *schema.Record) schema.Message[[]byte] {
	return schema.Message[[]byte]{Record: r, Body: r.Value}
}

// mustKey returns the key of a message that has one.
func mustKey[T any](t rapid.TB, key schema.KeyFunc[T], m schema.Message[T]) schema.Key {
	t.Helper()
	k, err := key(m)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rowMessage decodes payload into a message of the given fields.
func rowMessage(tb testing.TB, payload string, paths ...string) schema.Message[schema.Row] {
	tb.Helper()
	r := &schema.Record{Topic: "t", Offset: 7, Value: []byte(payload)}
	body, err := schema.Rows(schema.NewFields(paths...))(tb.Context(), r)
	if err != nil {
		tb.Fatal(err)
	}
	return schema.Message[schema.Row]{Record: r, Body: body}
}

// TestNewKeyIsStable proves that the bytes of a key never change from version
// to version: keys live in the ledger for months. The value is the head of
// SHA-256 over 01 61 03 62 7c 63.
func TestNewKeyIsStable(t *testing.T) {
	k := schema.NewKey([]byte("a"), []byte("b|c"))
	if got, want := uuid.UUID(k.ID).String(), "1011852e-2905-fb11-7c6e-bb42c84e050f"; got != want {
		t.Errorf("got ID %s, want %s", got, want)
	}
	if got, want := k.String(), `a|b\|c`; got != want {
		t.Errorf("got text %s, want %s", got, want)
	}
}

// TestKeyText proves how a key reads: as it is, wherever it can be shown as it is.
func TestKeyText(t *testing.T) {
	tests := []struct{ key, want string }{
		{"order-4711", "order-4711"},
		{"a|b", "a|b"},
		{"René 😀 �", "René 😀 �"},
		{`a\x00`, `a\\x00`},
		{"4\x00x\n\u0085", `4\x00x\x0a\xc2\x85`},
		{"\x00\x00\x00\x00\x07\x02\xff\xfe", `\x00\x00\x00\x00\x07\x02\xff\xfe`},
	}
	for _, tt := range tests {
		if got := schema.NewKey([]byte(tt.key)).Text; got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.key, got, tt.want)
		}
	}
}

// TestJoinIsInjective proves that two messages share a joined key only where all
// their parts are the same, however the bytes are spread over the parts.
func TestJoinIsInjective(t *testing.T) {
	key := schema.Join(schema.HeaderPart[[]byte]("a"), schema.HeaderPart[[]byte]("b"), schema.RecordKeyPart[[]byte]())
	message := func(text []byte, cut, cut2 int) schema.Message[[]byte] {
		return bytesMessage(&schema.Record{
			Headers: []schema.Header{{Key: "a", Value: text[:cut]}, {Key: "b", Value: text[cut:cut2]}},
			Key:     text[cut2:],
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]byte{'a', '|', '\\', 0, 1, 2, 0xff}), 4, 12).Draw(t, "text")
		cuts := func(name string) (int, int) {
			a := rapid.IntRange(1, len(text)-2).Draw(t, name)
			return a, rapid.IntRange(a+1, len(text)-1).Draw(t, name)
		}
		a, b := cuts("first")
		c, d := cuts("second")
		one, two := mustKey(t, key, message(text, a, b)), mustKey(t, key, message(text, c, d))
		same := a == c && b == d
		if (one.ID == two.ID) != same || (one.Text == two.Text) != same {
			t.Fatalf("cut at %d,%d and %d,%d: %v and %v", a, b, c, d, one, two)
		}
	})
}

// TestBinaryKeys proves that record keys that are no UTF-8 stay two keys, for
// a text decoder makes the same replacement characters of both.
func TestBinaryKeys(t *testing.T) {
	by := schema.ByRecordKey[[]byte]()
	one := mustKey(t, by, bytesMessage(&schema.Record{Key: []byte{0, 0, 0, 0, 7, 2, 0xff, 0xfe}}))
	two := mustKey(t, by, bytesMessage(&schema.Record{Key: []byte{0, 0, 0, 0, 7, 2, 0xfe, 0xff}}))
	if one.ID == two.ID || one.Text == two.Text {
		t.Errorf("got %v and %v", one, two)
	}
}

// TestByPosition proves that the same offset of another partition, of the topic
// created again, of another topic and of another cluster is another key.
func TestByPosition(t *testing.T) {
	by := schema.ByPosition[[]byte]()
	records := []schema.Record{
		{ClusterID: "c", Topic: "t", TopicID: [16]byte{1}, Partition: 0, Offset: 0},
		{ClusterID: "c", Topic: "t", TopicID: [16]byte{1}, Partition: 1, Offset: 0},
		{ClusterID: "c", Topic: "t", TopicID: [16]byte{1}, Partition: 0, Offset: 1},
		{ClusterID: "c", Topic: "t", TopicID: [16]byte{2}, Partition: 0, Offset: 0},
		{ClusterID: "d", Topic: "t", TopicID: [16]byte{1}, Partition: 0, Offset: 0},
		{ClusterID: "c", Topic: "u", TopicID: [16]byte{1}, Partition: 0, Offset: 0},
		{ClusterID: "ct", Topic: "", TopicID: [16]byte{1}, Partition: 0, Offset: 0},
	}
	ids, texts := map[[16]byte]bool{}, map[string]bool{}
	for _, r := range records {
		k := mustKey(t, by, bytesMessage(&r))
		r.Value = []byte("another")
		if again := mustKey(t, by, bytesMessage(&r)); again != k {
			t.Errorf("got %v and then %v for one position", k, again)
		}
		ids[k.ID], texts[k.Text] = true, true
	}
	if len(ids) != len(records) || len(texts) != len(records) {
		t.Errorf("%d positions gave %d ids and %d texts", len(records), len(ids), len(texts))
	}
}

// TestByFieldText proves which text a field gives. The number 1 and the text "1"
// are one key, digits are kept, and 1.0 is another key than 1.
func TestByFieldText(t *testing.T) {
	tests := []struct{ payload, want string }{
		{`{"k":{"id":1}}`, "1"},
		{`{"k":{"id":"1"}}`, "1"},
		{`{"k":{"id":1.0}}`, "1.0"},
		{`{"k":{"id":327267367867168100000}}`, "327267367867168100000"},
		{`{"k":{"id":9223372036854775808}}`, "9223372036854775808"},
		{`{"k":{"id":true}}`, "true"},
		{`{"k":{"id":"4\u0000x"}}`, `4\x00x`},
	}
	for _, tt := range tests {
		got := mustKey(t, schema.ByField("k.id"), rowMessage(t, tt.payload, "n", "k.id"))
		if got.Text != tt.want {
			t.Errorf("%s: got %s, want %s", tt.payload, got.Text, tt.want)
		}
		if want := schema.NewKey([]byte(tt.want)).ID; tt.want != `4\x00x` && got.ID != want {
			t.Errorf("%s: got ID %x, want that of %s", tt.payload, got.ID, tt.want)
		}
	}
}

// TestAsUUID proves that all forms of one UUID are one key, which is the UUID.
func TestAsUUID(t *testing.T) {
	want := uuid.MustParse("0190f3c2-7a1b-7c33-9d4e-5f60718293a4")
	byKey := schema.AsUUID(schema.RecordKeyPart[[]byte]())
	byHeader := schema.AsUUID(schema.HeaderPart[[]byte]("id"))
	byValue := schema.AsUUID(schema.ValuePart(func(m schema.Message[[]byte]) string { return string(m.Key) }))
	for _, form := range [][]byte{
		[]byte(want.String()), bytes.ToUpper([]byte(want.String())), want[:],
	} {
		m := bytesMessage(&schema.Record{Key: form, Headers: []schema.Header{{Key: "id", Value: form}}})
		keys := []schema.Key{mustKey(t, byKey, m), mustKey(t, byHeader, m)}
		if len(form) != 16 {
			keys = append(keys, mustKey(t, byValue, m))
		}
		for _, k := range keys {
			if k.ID != want || k.Text != "" || k.String() != want.String() {
				t.Errorf("%q: got %x with text %q", form, k.ID, k.Text)
			}
		}
	}
}

// TestByHeaderTakesTheLast proves which of several headers of one name counts.
func TestByHeaderTakesTheLast(t *testing.T) {
	m := bytesMessage(&schema.Record{Headers: []schema.Header{{Key: "id", Value: []byte("1")}, {Key: "ID", Value: []byte("x")}, {Key: "id", Value: []byte("2")}}})
	if k := mustKey(t, schema.ByHeader[[]byte]("id"), m); k.Text != "2" {
		t.Errorf("got %v", k)
	}
}

// TestJoinOfOne proves that a pipeline may go from one part to a list of one, and
// that the order of parts counts.
func TestJoinOfOne(t *testing.T) {
	m := rowMessage(t, `{"a":1,"b":2}`, "a", "b")
	a, b := schema.FieldPart("a"), schema.FieldPart("b")
	if one, by := mustKey(t, schema.Join(a), m), mustKey(t, schema.ByField("a"), m); one != by {
		t.Errorf("got %v and %v", one, by)
	}
	if ab, ba := mustKey(t, schema.Join(a, b), m), mustKey(t, schema.Join(b, a), m); ab.ID == ba.ID {
		t.Errorf("got %v twice", ab)
	}
}

// TestKeyMemory proves that a key costs one allocation, its text.
func TestKeyMemory(t *testing.T) {
	if raceEnabled {
		t.Log("allocations are counted without the race detector")
		return
	}
	m := rowMessage(t, `{"a":"0190f3c2-7a1b","b":2}`, "a", "b")
	for name, key := range map[string]schema.KeyFunc[schema.Row]{
		"one": schema.ByField("a"), "two": schema.Join(schema.FieldPart("a"), schema.FieldPart("b")),
	} {
		if n := testing.AllocsPerRun(200, func() { _, _ = key(m) }); n > 1 {
			t.Errorf("%s: %v allocations a key, want 1", name, n)
		}
	}
}

// TestKeyOfLongParts proves that parts beyond the buffer on the stack count in
// full.
func TestKeyOfLongParts(t *testing.T) {
	long := slices.Repeat([]byte("x"), 1000)
	longer := append(slices.Clone(long), 'y')
	if one, two := schema.NewKey(long), schema.NewKey(longer); one.ID == two.ID || len(two.Text) != 1001 {
		t.Errorf("got %v and %v", one, two)
	}
}
