package schema_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/oncestream/oncestream/schema"
)

// A name finds the fields that are mapped from it, also where they are spelled
// in two ways or lie within each other; a name that is not mapped finds nothing,
// however far one goes on from there.
func TestTree(t *testing.T) {
	t.Parallel()
	fields := schema.NewFields("a", "a.b", `c\d`, `c\\d`, `x\.y`)
	root := fields.Tree()
	values := make([]schema.Value, fields.Len())
	for i, name := range []string{"a", `c\d`, "x.y"} {
		root.Kid(name).Set(values, schema.Value{Kind: schema.Number, Raw: []byte{byte('1' + i)}})
	}
	root.Kid("a").Kid("b").Set(values, schema.Value{Kind: schema.Number, Raw: []byte("4")})
	var got []string
	for _, v := range values {
		got = append(got, string(v.Raw))
	}
	if want := []string{"1", "4", "2", "2", "3"}; !slices.Equal(got, want) {
		t.Errorf("values %q, want %q", got, want)
	}
	if root.Leaf() || !root.Inner() || !root.Kid("a").Leaf() || !root.Kid("a").Inner() || root.Kid("x.y").Inner() {
		t.Error("leaves and inner names are mixed up")
	}
	if none := root.Kid("x").Kid("y"); none != nil || none.Leaf() || none.Inner() {
		t.Error("there is something where nothing is mapped")
	}
	if kids := len(maps.Collect(root.Kids())); kids != 3 {
		t.Errorf("%d names at the root, want 3", kids)
	}
}
