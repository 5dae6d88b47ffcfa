package schema_test

import (
	"testing"

	"github.com/oncestream/oncestream/schema"
)

// TestKeyFaults proves that a message without a usable key is a fault that says
// what is missing where, and never a key that others would share.
func TestKeyFaults(t *testing.T) {
	field, uuidField := schema.ByField("id"), schema.AsUUID(schema.FieldPart("id"))
	joined := schema.Join(schema.FieldPart("n"), schema.HeaderPart[schema.Row]("h"))
	byHeader, byKey := schema.ByHeader[schema.Row]("h"), schema.ByRecordKey[schema.Row]()
	byValue := schema.ByValue(func(m schema.Message[schema.Row]) string { return string(m.Body.Get("id").Raw) })
	const id = "0190f3c2-7a1b-7c33-9d4e-5f60718293a4"
	tests := []struct {
		name, payload string
		key           schema.KeyFunc[schema.Row]
		reason        schema.Reason
		want          string
	}{
		{"field missing", `{}`, field, schema.ReasonKeyMissing, "t/0@7: key_missing: field id: the field id is missing"},
		{"field null", `{"id":null}`, field, schema.ReasonKeyMissing, "the field id is null"},
		{"field empty", `{"id":""}`, field, schema.ReasonKeyMissing, "the field id is empty"},
		{"object", `{"id":{}}`, field, schema.ReasonKeyInvalid, "an object or an array is no key"},
		{"array", `{"id":[1]}`, field, schema.ReasonKeyInvalid, "an object or an array is no key"},
		{"header missing", `{}`, byHeader, schema.ReasonKeyMissing, "t/0@7: key_missing: the header h is missing"},
		{"record key missing", `{}`, byKey, schema.ReasonKeyMissing, "the record key is missing"},
		{"value empty", `{}`, byValue, schema.ReasonKeyMissing, "the key value is empty"},
		{"second part missing", `{"n":1}`, joined, schema.ReasonKeyMissing, "the header h is missing"},
		{"uuid missing", `{}`, uuidField, schema.ReasonKeyMissing, "the field id is missing"},
		{"no uuid", `{"id":"4711"}`, uuidField, schema.ReasonKeyInvalid, "field id: the field id is no UUID: it has 4 bytes"},
		{"uuid of a number", `{"id":123456789012345678901234567890123456}`, uuidField, schema.ReasonKeyInvalid, "it is not a text"},
		{"uuid without hyphens", `{"id":"0190f3c27a1b7c339d4e5f60718293a4"}`, uuidField, schema.ReasonKeyInvalid, "no UUID"},
		{"uuid in braces", `{"id":"{` + id + `}"}`, uuidField, schema.ReasonKeyInvalid, "no UUID"},
		{"uuid as a URN", `{"id":"urn:uuid:` + id + `"}`, uuidField, schema.ReasonKeyInvalid, "no UUID"},
		{"uuid with a bad digit", `{"id":"g` + id[1:] + `"}`, uuidField, schema.ReasonKeyInvalid, "no UUID"},
		{"uuid of 16 letters", `{"id":"0123456789abcdef"}`, uuidField, schema.ReasonKeyInvalid, "no UUID"},
		{"nil uuid", `{"id":"00000000-0000-0000-0000-000000000000"}`, uuidField, schema.ReasonKeyInvalid, "stands for no id"},
		{"max uuid", `{"id":"FFFFFFFF-ffff-ffff-ffff-ffffffffffff"}`, uuidField, schema.ReasonKeyInvalid, "stands for no id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			key, err := tt.key(rowMessage(t, tt.payload, "id", "n"))
			wantFault(t, err, tt.reason, tt.want)
			if key != (schema.Key{}) {
				t.Errorf("got key %v beside the fault", key)
			}
		})
	}
}

// TestKeyOfEmptyBytes proves that a header or record key of no bytes, and a header
// without a value, is no key either.
func TestKeyOfEmptyBytes(t *testing.T) {
	r := &schema.Record{Key: []byte{}, Headers: []schema.Header{{Key: "null"}, {Key: "empty", Value: []byte{}}}}
	for name, want := range map[string]string{"null": "missing", "empty": "empty"} {
		_, err := schema.ByHeader[[]byte](name)(bytesMessage(r))
		wantFault(t, err, schema.ReasonKeyMissing, "the header "+name+" is "+want)
	}
	_, err := schema.ByRecordKey[[]byte]()(bytesMessage(r))
	wantFault(t, err, schema.ReasonKeyMissing, "the record key is empty")
}

// TestTombstoneKey proves that a tombstone says what to do where the key is a
// field, and has a key where that is the record key.
func TestTombstoneKey(t *testing.T) {
	r := &schema.Record{Topic: "t", Key: []byte("1")}
	body, err := schema.Rows(schema.NewFields("id"))(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	m := schema.Message[schema.Row]{Record: r, Body: body}
	_, err = schema.ByField("id")(m)
	wantFault(t, err, schema.ReasonKeyMissing, "field id", "take the record key or a header")
	if k := mustKey(t, schema.ByRecordKey[schema.Row](), m); k.Text != "1" {
		t.Errorf("got %v", k)
	}
}

// TestUnmappedKeyFieldPanics proves that a key field that the row does not carry
// stops the program: as an error it would set each message of the topic aside.
func TestUnmappedKeyFieldPanics(t *testing.T) {
	wantPanic(t, func() { _, _ = schema.ByField("id")(rowMessage(t, `{"id":1}`, "n")) })
	wantPanic(t, func() { _, _ = schema.ByField("id")(schema.Message[schema.Row]{Record: &schema.Record{}}) })
	wantPanic(t, func() { schema.Join[[]byte]() })
}

func wantPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}
