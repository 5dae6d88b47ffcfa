package schema

import "strings"

// SplitPath returns the names that a field's path is made of, from the outside
// in. Names are joined by dots; a dot that belongs to a name is written `\.`,
// and a backslash before a dot or a backslash `\\`. Any other backslash stands
// for itself. Every text is a path: "" is the one name "", and "a." the name ""
// within "a", for JSON allows empty names.
func SplitPath(path string) []string {
	var names []string
	var name strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '.':
			names = append(names, name.String())
			name.Reset()
		case c == '\\' && i+1 < len(path) && (path[i+1] == '.' || path[i+1] == '\\'):
			i++
			name.WriteByte(path[i])
		default:
			name.WriteByte(c)
		}
	}
	return append(names, name.String())
}

// JoinPath returns the path of the given names, with dots and backslashes of
// the names escaped: the reverse of [SplitPath]. It needs at least one name.
func JoinPath(names ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `.`, `\.`)
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = escape.Replace(n)
	}
	return strings.Join(quoted, ".")
}

// node is one name in the tree of mapped names. It is built once, so that the
// hot path finds a field by one look-up per name and keeps no path.
type node struct {
	fields []int // places in a row's Values; several where a path is spelled in several ways
	kids   map[string]*node
}

// newTree returns the root of the tree of f's paths.
func newTree(f *Fields) *node {
	root := &node{}
	for i, path := range f.Paths() {
		n := root
		for _, name := range SplitPath(path) {
			n = n.add(name)
		}
		n.fields = append(n.fields, i)
	}
	return root
}

// add returns the child of the given name, new if need be.
func (n *node) add(name string) *node {
	if n.kids == nil {
		n.kids = make(map[string]*node)
	}
	if n.kids[name] == nil {
		n.kids[name] = &node{}
	}
	return n.kids[name]
}

// set stores v in all the places that the node's path has.
func (n *node) set(values []Value, v Value) {
	for _, i := range n.fields {
		values[i] = v
	}
}
