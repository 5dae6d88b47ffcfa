package offsets_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/oncestream/oncestream/offsets"
)

// TestStatements shows all SQL in one file, so that a change of it is reviewed
// as SQL. It is rewritten by -rewrite, and no statement may be missing.
func TestStatements(t *testing.T) {
	missing := make(map[string]string)
	for _, s := range offsets.Statements("oncestream") {
		missing[strings.ReplaceAll(s.Name, " ", "-")] = strings.TrimSpace(s.SQL) + ";\n"
	}
	datadriven.RunTest(t, "testdata/statements.txt", func(_ *testing.T, d *datadriven.TestData) string {
		sql := missing[d.Cmd]
		delete(missing, d.Cmd)
		return sql
	})
	for name := range missing {
		t.Errorf("testdata/statements.txt does not show %s", name)
	}
}

// TestStatementsAreQualified proves that no table is found by the search path,
// where a user's table of the same name could be.
func TestStatementsAreQualified(t *testing.T) {
	for _, s := range offsets.Statements("a b") {
		words := strings.FieldsFunc(s.SQL, func(r rune) bool { return !strings.ContainsRune(`"._`, r) && (r < 'a' || r > 'z') })
		for _, table := range []string{"consumer_offset", "processed_message", "offset_change", "environment", "environment_change"} {
			if slices.Contains(words, table) {
				t.Errorf("%s: %s is not qualified in %s", s.Name, table, s.SQL)
			}
		}
		if regexp.MustCompile(`\$[a-z]`).MatchString(s.SQL) {
			t.Errorf("%s: a name was not replaced in %s", s.Name, s.SQL)
		}
	}
}
