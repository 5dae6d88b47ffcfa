package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"text/template"

	"github.com/oncestream/oncestream/schema"
)

// caseRecord is a line of a case's records.ndjson. One of Value, Text, Bytes
// and Template is the record's value; a record without them is a tombstone.
type caseRecord struct {
	// Partition defaults to 0.
	Partition int32 `json:"partition"`
	// Key is the record key as text, KeyBytes in base64.
	Key      *string `json:"key"`
	KeyBytes []byte  `json:"key_bytes"`
	// Value is sent as it stands here, to the byte.
	Value json.RawMessage `json:"value"`
	// Text is sent without its quotes.
	Text  *string `json:"text"`
	Bytes []byte  `json:"bytes"`
	// Template makes Times records (by default 1) with numbers from 0 on: it is
	// a text template with {{.}} as the number, {{repeat TEXT N}}, and
	// {{pick . A B …}}, which takes turns.
	Template string `json:"template"`
	Times    int    `json:"times"`
	// Headers are pairs of a name and a text.
	Headers [][2]string `json:"headers"`
	// Note says what the record is about.
	Note string `json:"note"`
}

// readCaseRecords reads a file of records, by partition.
func readCaseRecords(tb testing.TB, path string) map[int32][]schema.Record {
	tb.Helper()
	all := map[int32][]schema.Record{}
	decoder := json.NewDecoder(strings.NewReader(readFile(tb, path)))
	decoder.DisallowUnknownFields()
	for {
		var line caseRecord
		switch err := decoder.Decode(&line); {
		case err == io.EOF:
			return all
		case err != nil:
			tb.Fatalf("%s: %v", path, err)
		}
		all[line.Partition] = append(all[line.Partition], line.records(tb)...)
	}
}

func (l *caseRecord) records(tb testing.TB) []schema.Record {
	tb.Helper()
	r := schema.Record{Key: l.KeyBytes}
	if l.Key != nil {
		r.Key = []byte(*l.Key)
	}
	for _, h := range l.Headers {
		r.Headers = append(r.Headers, schema.Header{Key: h[0], Value: []byte(h[1])})
	}
	switch {
	case l.Template != "":
		return l.expand(tb, r)
	case l.Text != nil:
		r.Value = []byte(*l.Text)
	case l.Bytes != nil:
		r.Value = l.Bytes
	case l.Value != nil:
		r.Value = l.Value
	}
	return []schema.Record{r}
}

func (l *caseRecord) expand(tb testing.TB, r schema.Record) []schema.Record {
	tb.Helper()
	functions := template.FuncMap{
		"repeat": strings.Repeat,
		"pick":   func(i int, of ...string) string { return of[i%len(of)] },
	}
	made, err := template.New("").Funcs(functions).Parse(l.Template)
	if err != nil {
		tb.Fatal(err)
	}
	records := make([]schema.Record, max(1, l.Times))
	for i := range records {
		var b bytes.Buffer
		if err := made.Execute(&b, i); err != nil {
			tb.Fatal(err)
		}
		records[i] = r
		records[i].Value = b.Bytes()
	}
	return records
}

// Proves that a line of records.ndjson is sent to the byte: the cases are about
// bytes.
func TestCaseRecords(t *testing.T) {
	for line, want := range map[string]string{
		`{"value":{"a":1.0,  "a":2}}`:                   `{"a":1.0,  "a":2}`,
		`{"text":"null"}`:                               `null`,
		`{"bytes":"AP8="}`:                              "\x00\xff",
		`{"template":"{{repeat \"[\" 3}}{{.}}"}`:        `[[[0`,
		`{"key":"k","note":"a tombstone has no value"}`: ``,
	} {
		var r caseRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if got := r.records(t)[0]; string(got.Value) != want || (want == "") != (got.Value == nil) {
			t.Errorf("%s is sent as %q, want %q", line, got.Value, want)
		}
	}
}
