package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/oncestream/oncestream/"

// mayImport says which of our top-level folders a folder's packages may import:
// arrows point down, siblings do not meet. cmd may import all.
var mayImport = map[string][]string{
	"schema":    {"schema"},
	"offsets":   {"offsets", "schema"},
	"sinks":     {"sinks", "schema"},
	"processor": {"processor", "offsets", "schema"},
	"cmd":       {"cmd", "processor", "offsets", "sinks", "schema"},
}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath, Dir  string
	GoFiles, Imports []string
}

// path is the package's folder below the module's root.
func (p listed) path() string { return strings.TrimPrefix(p.ImportPath, module) }

// testSupport reports whether the package is for tests, ours or our users'.
func testSupport(path string) bool {
	return strings.HasSuffix(path, "test") || strings.Contains(path, "test/")
}

// tortures reports whether the package is of the torture, which is a test that the
// program carries so that users can run it themselves.
func tortures(path string) bool {
	return path == "processor/processortest/torture" || path == "processor/processortest/check"
}

// ships reports whether the package is in the library or the program that users
// get. A further command, for measurements, may start servers as tests do.
func (p listed) ships() bool {
	return !strings.HasPrefix(p.path(), "cmd/") || p.path() == "cmd/oncestream"
}

// faults returns each import of p that points up or sideways, and each that
// brings test code into what ships. Test support may import what it tests.
func (p listed) faults() []string {
	if testSupport(p.path()) {
		return nil
	}
	var faults []string
	top, _, _ := strings.Cut(p.path(), "/")
	for _, path := range p.Imports {
		ours, isOurs := strings.CutPrefix(path, module)
		to, _, _ := strings.Cut(ours, "/")
		switch {
		case p.ships() && (path == "testing" || isOurs && testSupport(ours) && (top != "cmd" || !tortures(ours))):
			faults = append(faults, fmt.Sprintf("%s imports test code: %s", p.path(), path))
		case p.path() == "schema" && isOurs:
			faults = append(faults, "schema is the ground, and imports "+ours)
		case isOurs && !slices.Contains(mayImport[top], to):
			faults = append(faults, fmt.Sprintf("%s must not import %s", p.path(), ours))
		}
	}
	return faults
}

// kafkaFaults returns the imports of a Kafka client by a file that is not one
// of processor/source_*.go, in the library's packages.
func (p listed) kafkaFaults(imports func(file string) ([]string, error)) ([]string, error) {
	if testSupport(p.path()) || strings.HasPrefix(p.path(), "cmd/") {
		return nil, nil
	}
	var faults []string
	for _, file := range p.GoFiles {
		if p.path() == "processor" && strings.HasPrefix(file, "source_") {
			continue
		}
		paths, err := imports(filepath.Join(p.Dir, file))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if strings.HasPrefix(path, "github.com/twmb/franz-go/pkg/k") {
				faults = append(faults, fmt.Sprintf("%s/%s imports %s", p.path(), file, path))
			}
		}
	}
	return faults, nil
}

// Every import between our packages points down, none of them takes test code
// along, and Kafka is spoken in processor/source_*.go only. The linter checks
// the same where it is installed; this holds without it.
func TestArrowsPointDown(t *testing.T) {
	t.Parallel()
	packages := list(t)
	if len(packages) < 5 {
		t.Fatalf("only %d packages listed", len(packages))
	}
	for _, p := range packages {
		kafka, err := p.kafkaFaults(fileImports)
		if err != nil {
			t.Error(err)
		}
		for _, fault := range append(p.faults(), kafka...) {
			t.Error(fault)
		}
	}
}

// The check above finds each kind of wrong import, and passes the right ones.
func TestArrowsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		wrong    bool
	}{
		{"schema", "schema/tables", true},
		{"schema/tables", "schema", false},
		{"schema/tables", "offsets", true},
		{"offsets", "schema/tables", false},
		{"offsets", "sinks", true},
		{"sinks", "offsets", true},
		{"sinks", "processor", true},
		{"processor", "sinks", true},
		{"processor", "cmd/oncestream", true},
		{"processor", "processor/processortest", true},
		{"processor/processortest", "schema/tables/tablestest", false},
		{"cmd/oncestream", "sinks", false},
		{"cmd/oncestream", "sinks/sinkstest", true},
		{"cmd/oncestream", "processor/processortest/torture", false},
		{"processor", "processor/processortest/torture", true},
		{"cmd/other", "processor/processortest", false},
	} {
		p := listed{ImportPath: module + c.from, Imports: []string{"fmt", module + c.to}}
		if got := len(p.faults()) == 1; got != c.wrong {
			t.Errorf("%s -> %s: wrong is %v, want %v", c.from, c.to, got, c.wrong)
		}
	}
	p := listed{ImportPath: module + "processor", GoFiles: []string{"source_group.go", "batch.go"}}
	kafka, err := p.kafkaFaults(func(string) ([]string, error) { return []string{"github.com/twmb/franz-go/pkg/kgo"}, nil })
	if want := []string{"processor/batch.go imports github.com/twmb/franz-go/pkg/kgo"}; err != nil || !slices.Equal(kafka, want) {
		t.Errorf("faults %q, %v, want %q", kafka, err, want)
	}
}

// list returns the packages of this module.
func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,GoFiles,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func fileImports(file string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, spec := range f.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths, nil
}
