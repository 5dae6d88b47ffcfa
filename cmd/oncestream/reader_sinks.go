package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml/ast"

	"github.com/oncestream/oncestream/schema"
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

// column reads where a column's value comes from: a field, a whole number, or an
// object that names its source.
func (r *reader) column(path, name string, node ast.Node) (column, bool) {
	if n, ok := node.(*ast.IntegerNode); ok {
		value := schema.Value{Kind: schema.Number, Raw: []byte(n.GetToken().Value)}
		if _, err := strconv.ParseInt(n.GetToken().Value, 10, 64); err != nil {
			r.failAt(path, "must be a field or a whole number of 64 bits (got %s)", n.GetToken().Value)
			return column{}, false
		}
		return column{name: name, value: &value}, true
	}
	_, _, scalar := scalarText(node)
	if _, ok := pairsOf(node); ok && !scalar {
		return r.columnObject(path, name, node)
	}
	field, ok := r.text(path, node)
	return column{name: name, field: field}, ok
}

// sourceFields describes the object that says where a column's value is from.
func sourceFields(c *column) []field {
	return []field{
		{path: "field", value: &c.field, doc: "A field of the message, or a pseudo-field."},
		{path: "value", value: &c.value, doc: "The same value for each message: a text, a number with all its digits, true, false or null."},
		{path: "expr", value: &c.expr, doc: "An expression, such as `amount * 1.19` or `lower(email)`."},
		{path: "as", value: &c.as, noDefault: "as it is", doc: "How the value is read where its type does not tell, such as `epoch_millis`: a conversion of the table below, or a list of them."},
		{path: "type", value: &c.typ, noDefault: "`text`", doc: "The type of a parameter of `sql`, as SQL writes it."},
	}
}

func (r *reader) columnObject(path, name string, node ast.Node) (column, bool) {
	c := column{name: name}
	before := len(r.faults)
	r.mapping(path, "", node, sourceFields(&c))
	given := 0
	for _, source := range []string{"field", "value", "expr"} {
		if _, ok := r.lines[join(path, source)]; ok {
			given++
		}
	}
	if len(r.faults) == before && given != 1 {
		r.failAt(path, "must have one of field, value and expr (got %d of them)", given)
	}
	return c, len(r.faults) == before
}

// conversions reads the name of a conversion, or several.
func (r *reader) conversions(at string, node ast.Node, to *conversions) {
	if seq, ok := node.(*ast.SequenceNode); ok {
		for i, item := range seq.Values {
			if name, ok := r.text(fmt.Sprintf("%s[%d]", at, i), item); ok {
				*to = append(*to, name)
			}
		}
		return
	}
	if name, ok := r.text(at, node); ok {
		*to = conversions{name}
	}
}

// constant reads the value that each message is given. A number keeps every
// digit that is written.
func (r *reader) constant(at string, node ast.Node, to **schema.Value) {
	text, quoted, ok := scalarText(node)
	v := &schema.Value{Kind: schema.String}
	switch node.(type) {
	case *ast.NullNode:
		*to = &schema.Value{Kind: schema.Null}
		return
	case *ast.BoolNode:
		v.Kind, text = schema.Bool, strings.ToLower(text)
	case *ast.IntegerNode, *ast.FloatNode:
		v.Kind = schema.Number
	}
	if v.Kind == schema.Number && !jsontext.Value(text).IsValid() {
		r.failAt(at, "must be a decimal number as JSON has them, or a text in quotes (got %s)", text)
		return
	}
	if !ok {
		r.failAt(at, "must be a text, a number, true, false or null (got %s)", nodeName(node))
		return
	}
	if quoted {
		if text, ok = r.expand(at, text); !ok {
			return
		}
	}
	v.Raw = []byte(text)
	*to = v
}
