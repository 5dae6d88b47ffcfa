package schema_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
)

// TestSplitPath proves the rules of dots and backslashes.
func TestSplitPath(t *testing.T) {
	tests := []struct {
		path string
		want []string
	}{
		{"", []string{""}},
		{"a", []string{"a"}},
		{"a.b.c", []string{"a", "b", "c"}},
		{`a\.b.c`, []string{"a.b", "c"}},
		{`a\\.b`, []string{`a\`, "b"}},
		{`a\b`, []string{`a\b`}},
		{`a\`, []string{`a\`}},
		{"a.", []string{"a", ""}},
	}
	for _, tt := range tests {
		if got := schema.SplitPath(tt.path); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.path, got, tt.want)
		}
	}
}

// TestJoinPathRoundTrip proves that any names can be written as a path.
func TestJoinPathRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching(`[a.\\é]{0,4}`), 1, 4).Draw(t, "names")
		if got := schema.SplitPath(schema.JoinPath(names...)); !slices.Equal(got, names) {
			t.Fatalf("got %q, want %q", got, names)
		}
	})
}

// TestFields proves that a repeated path counts once and an unknown one is Missing.
func TestFields(t *testing.T) {
	f := schema.NewFields("a", "b", "a")
	if f.Len() != 2 || f.Index("b") != 1 || f.Index("c") != -1 || !slices.Equal(f.Paths(), []string{"a", "b"}) {
		t.Errorf("got %v", f.Paths())
	}
	if v := mustRow(t, `{"c":1}`, "a").Get("c"); v.Kind != schema.Missing || v.Present() {
		t.Errorf("got %v", v)
	}
}
