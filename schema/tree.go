package schema

import (
	"iter"
	"maps"
)

// Tree is one name in the tree of the names that fields are mapped from: a
// decoder walks it along with the payload, so that it finds a field by one
// look-up per name and keeps no path. It is built once, see [Fields.Tree], and
// may be used by several goroutines. A nil Tree is a name that is not mapped.
type Tree struct {
	fields []int // places in a row's Values; several where a path is spelled in several ways
	kids   map[string]*Tree
}

// Tree returns the root of the tree of f's paths.
func (f *Fields) Tree() *Tree {
	root := &Tree{}
	for i, path := range f.Paths() {
		t := root
		for _, name := range SplitPath(path) {
			t = t.add(name)
		}
		t.fields = append(t.fields, i)
	}
	return root
}

// add returns the child of the given name, new if need be.
func (t *Tree) add(name string) *Tree {
	if t.kids == nil {
		t.kids = make(map[string]*Tree)
	}
	if t.kids[name] == nil {
		t.kids[name] = &Tree{}
	}
	return t.kids[name]
}

// Kid returns what is mapped within t by the given name, nil where nothing is.
func (t *Tree) Kid(name string) *Tree {
	if t == nil {
		return nil
	}
	return t.kids[name]
}

// Kids returns all that is mapped within t, which is not nil, by name and in no
// order.
func (t *Tree) Kids() iter.Seq2[string, *Tree] { return maps.All(t.kids) }

// Inner reports whether anything is mapped within t.
func (t *Tree) Inner() bool { return t != nil && t.kids != nil }

// Leaf reports whether the value of this very name is mapped, as a whole. Names
// within it may be mapped too.
func (t *Tree) Leaf() bool { return t != nil && len(t.fields) > 0 }

// Set stores v at each of the places that a row has for this name, which must be
// mapped or have something mapped within it.
func (t *Tree) Set(values []Value, v Value) {
	for _, i := range t.fields {
		values[i] = v
	}
}
