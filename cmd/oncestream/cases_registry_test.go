package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// caseRegistry is a schema registry that counts what it is asked.
type caseRegistry struct {
	server *httptest.Server
	mu     sync.Mutex
	counts map[string]int // by path
}

// newCaseRegistry returns a registry with the schemas of a case's folder, whose
// names hold their ids: schema-7.avsc.
func newCaseRegistry(tb testing.TB, dir string) *caseRegistry {
	tb.Helper()
	fake := srfake.New()
	tb.Cleanup(fake.Close)
	r := &caseRegistry{counts: map[string]int{}}
	r.server = httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.counts[q.URL.Path]++
		r.mu.Unlock()
		fake.Handler().ServeHTTP(answer, q)
	}))
	tb.Cleanup(r.server.Close)
	files, err := filepath.Glob(filepath.Join(dir, "schema-*"))
	noErr(tb, err)
	for _, file := range files {
		kind := filepath.Ext(file)
		id, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "schema-"), kind))
		noErr(tb, err)
		types := map[string]sr.SchemaType{".avsc": sr.TypeAvro, ".proto": sr.TypeProtobuf}
		fake.SeedSchema(filepath.Base(file), 1, id, sr.Schema{Type: types[kind], Schema: readFile(tb, file)})
	}
	return r
}

// asked returns how often the schema of an id was asked for.
func (r *caseRegistry) asked(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts["/schemas/ids/"+id]
}
