package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// sinks reads the list of sinks, each a mapping of one kind to its fields.
func (r *reader) sinks(at string, node ast.Node, to *[]sinkConfig) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		r.failAt(at, "must be a list of sinks (got %s)", nodeName(node))
		return
	}
	for i, item := range list.Values {
		r.sink(fmt.Sprintf("%s[%d]", at, i), item, to)
	}
}

func (r *reader) sink(at string, node ast.Node, to *[]sinkConfig) {
	r.lines[at] = node.GetToken().Position.Line
	pairs, ok := pairsOf(node)
	if !ok || len(pairs) != 1 {
		r.failAt(at, "must be a mapping of one kind of sink, as in insert: {table: payments} (got %s)", describePairs(node, pairs))
		return
	}
	name := pairs[0].Key.GetToken().Value
	kinds := sinkKinds()
	i := slices.IndexFunc(kinds, func(k sinkKind) bool { return k.name == name })
	path := at + "." + name
	r.lines[path] = pairs[0].Key.GetToken().Position.Line
	if i < 0 {
		r.failAt(path, "unknown kind of sink%s", didYouMean(name, kindNames(kinds)))
		return
	}
	s := sinkConfig{kind: name, path: path}
	fields := kinds[i].fields(&s)
	r.mapping(path, "", pairs[0].Value, fields)
	r.finish(path, fields)
	*to = append(*to, s)
}

func describePairs(node ast.Node, pairs []*ast.MappingValueNode) string {
	if len(pairs) > 1 {
		return fmt.Sprintf("%d of them", len(pairs))
	}
	return nodeName(node)
}

func kindNames(kinds []sinkKind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// columns reads a map from column to field, or a list of columns whose fields
// have the same name.
func (r *reader) columns(at string, node ast.Node, to *columns) {
	if list, ok := node.(*ast.SequenceNode); ok {
		for i, item := range list.Values {
			if name, ok := r.text(fmt.Sprintf("%s[%d]", at, i), item); ok {
				*to = append(*to, sameName(name))
			}
		}
		return
	}
	pairs, ok := pairsOf(node)
	if !ok {
		r.failAt(at, "must be a mapping from column to field, or a list of columns (got %s)", nodeName(node))
		return
	}
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		path := join(at, name)
		r.lines[path] = pair.Key.GetToken().Position.Line
		if c, ok := r.column(path, name, pair.Value); ok {
			*to = append(*to, c)
		}
	}
}

// column reads where a column's value comes from: a field, or a whole number.
func (r *reader) column(path, name string, node ast.Node) (column, bool) {
	if n, ok := node.(*ast.IntegerNode); ok {
		number, err := strconv.ParseInt(n.GetToken().Value, 10, 64)
		if err != nil {
			r.failAt(path, "must be a field or a whole number of 64 bits (got %s)", n.GetToken().Value)
			return column{}, false
		}
		return column{name: name, number: &number}, true
	}
	field, ok := r.text(path, node)
	return column{name: name, field: field}, ok
}
