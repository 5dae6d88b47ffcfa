package registry_test

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
	"go.uber.org/goleak"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/registry"
)

// No test leaves a goroutine: the look-ups run in their callers.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a registry that speaks the protocol, and counts what it is asked.
type fake struct {
	*srfake.Registry
	requests atomic.Int64
}

func newFake(tb testing.TB, opts ...srfake.Option) *fake {
	tb.Helper()
	f := &fake{Registry: srfake.New(opts...)}
	tb.Cleanup(f.Close)
	f.Intercept(func(http.ResponseWriter, *http.Request) bool {
		f.requests.Add(1)
		return false
	})
	return f
}

// seed registers a schema under an id.
func (f *fake) seed(id int, kind sr.SchemaType, text string, refs ...sr.SchemaReference) {
	f.SeedSchema("subject-"+strings.Repeat("i", id%97)+"-"+kind.String(), id, id, sr.Schema{Schema: text, Type: kind, References: refs})
}

// open opens the fake as a user would.
func open(tb testing.TB, f *fake, change ...func(*registry.Options)) *registry.Registry {
	tb.Helper()
	o := registry.Options{URL: f.URL()}
	for _, c := range change {
		c(&o)
	}
	r, err := registry.Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Close)
	return r
}

// frame puts a schema id before a body.
func frame(id uint32, body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, id), body...)
}

// record returns a record of the value.
func record(value []byte) *schema.Record {
	return &schema.Record{Topic: "t", Partition: 3, Offset: 7, Value: value}
}

// unbase64 returns the bytes of a value that was given as base64.
func unbase64(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// read decodes a value that must be right.
func read(tb testing.TB, decode schema.Decoder[schema.Row], value []byte) schema.Row {
	tb.Helper()
	row, err := decode(tb.Context(), record(value))
	if err != nil {
		tb.Fatal(err)
	}
	return row
}

// wantField compares one field of a row.
func wantField(tb testing.TB, row schema.Row, path string, kind schema.Kind, raw string) {
	tb.Helper()
	if v := row.Get(path); v.Kind != kind || string(v.Raw) != raw {
		tb.Errorf("%s: kind %d %q, want kind %d %q", path, v.Kind, v.Raw, kind, raw)
	}
}

// wantFault decodes a value that must be its own decode fault, of its own
// record, in words that hold the given ones.
func wantFault(tb testing.TB, decode schema.Decoder[schema.Row], value []byte, words ...string) {
	tb.Helper()
	r := record(value)
	row, err := decode(tb.Context(), r)
	f, ok := errors.AsType[*schema.Fault](err)
	if !ok || schema.IsUnavailable(err) {
		tb.Errorf("no fault but %v, row %v", err, row)
		return
	}
	if f.Reason != schema.ReasonDecode || f.Record != r || row.Values != nil {
		tb.Errorf("reason %s, record %v, row %v", f.Reason, f.Record, row)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			tb.Errorf("%q does not say %q", err, w)
		}
	}
}
