package sinks

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/expr-lang/expr/ast"
)

// in asks for a member of an array, which the expression or the message holds.
func (c *compiler) in(n *ast.BinaryNode) (node, error) {
	out, _, b, err := c.both(n, isBool, func(a, b any) (any, error) {
		items, err := itemsOf(b)
		for _, item := range items {
			is, failed := same(a, item)
			if failed != nil || is {
				return is, failed
			}
		}
		return false, err
	})
	if err == nil && b != unknown && b != isArray {
		err = c.locate(n.Right, fmt.Errorf("%s is needed, this is %s", isArray, b))
	}
	return out, err
}

func itemsOf(v any) (elements, error) {
	switch v := v.(type) {
	case elements:
		return v, nil
	case document:
		if v.array() {
			return v.items()
		}
	}
	return nil, fmt.Errorf("%s is needed, this is %s", isArray, kindOf(v))
}

func (c *compiler) array(n *ast.ArrayNode) (node, error) {
	var faults []error
	items := make([]node, len(n.Nodes))
	for i := range n.Nodes {
		var err error
		items[i], err = c.node(n.Nodes[i])
		faults = append(faults, err)
	}
	return node{func(m message) (any, error) {
		out := make(elements, len(items))
		for i := range items {
			var err error
			if out[i], err = items[i].eval(m); err != nil {
				return nil, err
			}
		}
		return out, nil
	}, isArray}, errors.Join(faults...)
}

// matches compiles the pattern once, so it must be written out. Patterns of RE2
// take time linear in the text.
func (c *compiler) matches(n *ast.BinaryNode) (node, error) {
	pattern, ok := n.Right.(*ast.StringNode)
	if !ok {
		return node{}, c.locate(n.Right, errors.New("the regular expression must be written out as a text"))
	}
	re, err := regexp.Compile(pattern.Value)
	if err != nil {
		return node{}, c.locate(n.Right, err)
	}
	of, err := c.typed(n.Left, isText)
	return node{func(m message) (any, error) {
		v, err := of.eval(m)
		if err != nil {
			return nil, err
		}
		return re.MatchString(v.(string)), nil
	}, isBool}, err
}

func (c *compiler) texts(n *ast.BinaryNode, f func(a, b string) bool) (node, error) {
	return c.function(isBool, []operand{isText, isText}, []ast.Node{n.Left, n.Right}, func(args []any) (any, error) {
		return f(args[0].(string), args[1].(string)), nil
	})
}
