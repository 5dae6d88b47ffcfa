package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/registry"
)

const idSchema = `{"type":"record","name":"R","fields":[{"name":"id","type":"long"}]}`

// A thousand records of an unknown id among a thousand good ones, read by
// several goroutines at once: one request for each of the two ids, every good
// record read, every other one its own fault that names the id and the remedy.
func TestUnknownIDAsksOnce(t *testing.T) {
	f := newFake(t)
	f.seed(7, sr.TypeAvro, idSchema)
	decode := open(t, f).Avro(schema.NewFields("id"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 125 {
				wantFault(t, decode, frame(999999, byte(i)), "999999", "does not know", "register it")
				wantField(t, read(t, decode, frame(7, 0x54)), "id", schema.Number, "42")
			}
		})
	}
	wg.Wait()
	if n := f.requests.Load(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// An id that was unknown is found after UnknownFor, once it is registered.
func TestUnknownIDIsAskedAgain(t *testing.T) {
	f := newFake(t)
	decode := open(t, f, func(o *registry.Options) { o.UnknownFor = time.Nanosecond }).Avro(schema.NewFields("id"))
	wantFault(t, decode, frame(7, 2), "schema id 7")
	f.seed(7, sr.TypeAvro, idSchema)
	for { // the clock may not have moved
		if row, err := decode(t.Context(), record(frame(7, 2))); err == nil {
			wantField(t, row, "id", schema.Number, "1")
			return
		}
	}
}

// A registry that does not answer, refuses the user or is no registry is never
// the message's fault, is asked again by the next record, and is found.
func TestUnavailable(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"500": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error_code":50001}`, http.StatusInternalServerError)
		},
		"401": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error_code":401}`, http.StatusUnauthorized)
		},
		"429":        func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusTooManyRequests) },
		"proxy 404":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>no such page", http.StatusNotFound) },
		"servlet":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error_code":404}`, http.StatusNotFound) },
		"html":       func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>welcome") },
		"other json": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
		"cut":        func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.seed(7, sr.TypeAvro, idSchema)
			f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				answer(w, r)
				return true
			})
			decode := open(t, f).Avro(schema.NewFields("id"))
			for range 2 {
				wantUnavailable(t, decode, frame(7, 2))
			}
			if n := f.requests.Load(); n < 2 {
				t.Errorf("%d requests: the outage was kept", n)
			}
			f.ClearInterceptors()
			wantField(t, read(t, decode, frame(7, 2)), "id", schema.Number, "1")
		})
	}
}

// wantUnavailable decodes a value that must be nobody's fault.
func wantUnavailable(t *testing.T, decode schema.Decoder[schema.Row], value []byte) {
	t.Helper()
	_, err := decode(t.Context(), record(value))
	if _, fault := errors.AsType[*schema.Fault](err); fault || !schema.IsUnavailable(err) {
		t.Errorf("%v counts as the message's fault", err)
	}
}

// A registry that takes no connections, and one that takes longer than Timeout.
func TestUnreachable(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, o := range []registry.Options{{URL: gone.URL}, {URL: hanging(t), Timeout: time.Millisecond}} {
		r, err := registry.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		wantUnavailable(t, r.Avro(schema.NewFields("id")), frame(7, 2))
		r.Close()
	}
}

// hanging is a registry that never answers.
func hanging(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(s.Close)
	return s.URL
}

// A look-up that its caller cancels is unavailable, and says so of the context.
func TestCancelled(t *testing.T) {
	r, err := registry.Open(registry.Options{URL: hanging(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, decode := range []schema.Decoder[schema.Row]{r.Avro(schema.NewFields("a")), r.Protobuf(schema.NewFields("a"))} {
		if _, err := decode(ctx, record(frame(7, 0))); !schema.IsUnavailable(err) || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}

// User and Password, and Token, reach the registry; without them it refuses.
func TestAuthentication(t *testing.T) {
	for header, change := range map[string]func(*registry.Options){
		"Basic dTpw": func(o *registry.Options) { o.User, o.Password = "u", "p" },
		"Bearer abc": func(o *registry.Options) { o.Token = "abc" },
	} {
		f := newFake(t, srfake.WithAuth(header))
		f.seed(7, sr.TypeAvro, idSchema)
		read(t, open(t, f, change).Avro(schema.NewFields("id")), frame(7, 2))
		wantUnavailable(t, open(t, f).Avro(schema.NewFields("id")), frame(7, 2))
	}
}

// The TLS configuration is used: the certificate is trusted with it only.
func TestTLS(t *testing.T) {
	f := newFake(t)
	f.seed(7, sr.TypeAvro, idSchema)
	s := httptest.NewTLSServer(f.Handler())
	defer s.Close()
	s.Config.ErrorLog = discard()
	tls := s.Client().Transport.(*http.Transport).TLSClientConfig
	read(t, open(t, f, func(o *registry.Options) { o.URL, o.TLS = s.URL, tls }).Avro(schema.NewFields("id")), frame(7, 2))
	wantUnavailable(t, open(t, f, func(o *registry.Options) { o.URL = s.URL }).Avro(schema.NewFields("id")), frame(7, 2))
}

// Of two addresses the one that can be reached is asked.
func TestSecondAddress(t *testing.T) {
	f := newFake(t)
	f.seed(7, sr.TypeAvro, idSchema)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	read(t, open(t, f, func(o *registry.Options) { o.URL = gone.URL + ", " + f.URL() }).Avro(schema.NewFields("id")), frame(7, 2))
}

// A schema that the decoder cannot use is the message's fault, and asked for once.
func TestUnusableSchema(t *testing.T) {
	f := newFake(t)
	f.seed(1, sr.TypeProtobuf, `syntax = "proto3"; message M {}`)
	f.seed(2, sr.TypeAvro, `{"type":"record","name":"R","fields":[{"name":"a","type":"nonsense"}]}`)
	f.seed(3, sr.TypeAvro, `"string"`)
	f.seed(4, sr.TypeProtobuf, `syntax = "proto3"; import "lost.proto"; message M {}`)
	r := open(t, f)
	decode := r.Avro(schema.NewFields("a"))
	for range 3 {
		wantFault(t, decode, frame(1, 0), "schema id 1", "PROTOBUF", "AVRO")
		wantFault(t, decode, frame(2, 0), "schema id 2", "nonsense")
		wantFault(t, decode, frame(3, 2, 'x'), "schema id 3", "needs a record", "string")
		wantFault(t, r.Protobuf(schema.NewFields("a")), frame(4, 0), "schema id 4", "lost.proto")
	}
	if n := f.requests.Load(); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
}

// What is no frame is a fault that says so, and asks nothing; a tombstone is a
// row of nothing in all three formats.
func TestFrame(t *testing.T) {
	f := newFake(t)
	r := open(t, f)
	fields := schema.NewFields("a")
	for _, decode := range []schema.Decoder[schema.Row]{r.Avro(fields), r.Protobuf(fields), r.JSON(fields)} {
		wantFault(t, decode, []byte{}, "byte 0", "empty")
		wantFault(t, decode, []byte(`{"a":1}`), "byte 0", "0x7b", "without a schema registry")
		wantFault(t, decode, []byte{0, 0, 0, 1}, "byte 4", "cut short")
		wantFault(t, decode, frame(0xFFFFFFFF, 0), "4294967295")
		row := read(t, decode, nil)
		wantField(t, row, "a", schema.Missing, "")
	}
	if n := f.requests.Load(); n != 0 {
		t.Errorf("%d requests for what is no frame", n)
	}
}
