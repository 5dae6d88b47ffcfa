package registry_test

import (
	"testing"

	"github.com/oncestream/oncestream/schema"
)

// Framed JSON is read as schema.Rows reads JSON, without a request; a fault is
// that of the whole record.
func TestJSON(t *testing.T) {
	f := newFake(t)
	decode := open(t, f).JSON(schema.NewFields("n", "a.b"))
	row := read(t, decode, append(frame(5), `{"n":327267367867168100000,"a":{"b":null}}`...))
	wantField(t, row, "n", schema.Number, "327267367867168100000")
	wantField(t, row, "a.b", schema.Null, "")
	wantFault(t, decode, append(frame(5), `{"n":1,"n":2}`...), "schema id 5", "json at byte 7", "frame of 5 bytes")
	wantFault(t, decode, frame(5), "empty")
	if n := f.requests.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}
