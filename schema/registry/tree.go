package registry

import "github.com/oncestream/oncestream/schema"

// node is one name in the tree of mapped names. A nil node is a name that is
// not mapped.
type node struct {
	fields []int // places in a row's Values
	kids   map[string]*node
}

// newTree returns the root of the tree of the fields' paths.
func newTree(fields *schema.Fields) *node {
	root := &node{}
	for i, path := range fields.Paths() {
		n := root
		for _, name := range schema.SplitPath(path) {
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

// kid returns the child of the given name, nil where there is none.
func (n *node) kid(name string) *node {
	if n == nil {
		return nil
	}
	return n.kids[name]
}

// leaf reports whether the node's own value is mapped.
func (n *node) leaf() bool { return n != nil && len(n.fields) > 0 }

// set stores v in all the places that the node's path has.
func (n *node) set(values []schema.Value, v schema.Value) {
	for _, i := range n.fields {
		values[i] = v
	}
}
