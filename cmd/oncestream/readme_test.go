package main

import (
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncestream/oncestream/sinks"
)

//go:generate go test -run TestReadme -update .

var update = flag.Bool("update", false, "rewrite what is made of the code: parts of the README, the scripts' expectations")

const readme = "../../README.md"

// The README's reference of the pipeline file is what the file is read by, its
// table of values is that of the sinks, that of the metrics is what a run has, its list of faults is what the torture has, and its example of the library is what was compiled.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	want := replaceBlock(t, string(text), "reference", "\n"+reference()+"\n")
	want = replaceBlock(t, want, "metrics", "\n"+metricsMarkdown()+"\n")
	want = replaceBlock(t, want, "values", "\n"+sinks.RulesMarkdown()+"\n")
	want = replaceBlock(t, want, "library", "\n```go\n"+libraryExample(t)+"```\n")
	want = replaceBlock(t, want, "faults", "\n```text\n"+faultList(t)+"```\n\n")
	if *update {
		if err := os.WriteFile(readme, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the README is behind the code: run go generate ./cmd/oncestream\n%s", diff)
	}
}

// replaceBlock replaces what stands between the marks of a block.
func replaceBlock(t *testing.T, text, name, with string) string {
	t.Helper()
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
	before, rest, ok1 := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("the README has no block %q", name)
	}
	return before + begin + with + end + after
}

// faultList is what the program lists.
func faultList(t *testing.T) string {
	t.Helper()
	var list strings.Builder
	if code := run(t.Context(), []string{"torture", "--list"}, os.LookupEnv, nil, &list, io.Discard); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	return list.String()
}

// libraryExample cuts the example out of its test file.
func libraryExample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("library_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok1 := strings.Cut(string(text), "\t// begin\n")
	code, _, ok2 := strings.Cut(rest, "\t// end\n")
	if !ok1 || !ok2 {
		t.Fatal("library_test.go has no marks")
	}
	lines := strings.SplitAfter(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "\t")
	}
	return strings.Join(lines, "")
}
