package sinks

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/apd/v3"
	"github.com/expr-lang/expr/ast"
)

// inside compiles a[0] and a.b where the path ends before: the way into a JSON
// array or object. What is not there is null.
func (c *compiler) inside(n *ast.MemberNode) (node, error) {
	of, err := c.node(n.Node)
	property, err2 := c.node(n.Property)
	if err = errors.Join(err, err2); err != nil {
		return node{}, err
	}
	if property.kind != unknown && property.kind != isText && property.kind != isNumber {
		return node{}, c.locate(n.Property, fmt.Errorf("a name or a number is needed, this is %s", property.kind))
	}
	return node{eval: func(m message) (any, error) {
		v, err := of.eval(m)
		if err != nil || v == nil {
			return nil, err
		}
		at, err := property.eval(m)
		if err != nil {
			return nil, err
		}
		return memberOf(v, at)
	}}, nil
}

func memberOf(v, at any) (any, error) {
	switch at := at.(type) {
	case string:
		if d, ok := v.(document); ok && !d.array() {
			return d.member(at)
		}
		return nil, fmt.Errorf("%s has no member %q", kindOf(v), at)
	case *apd.Decimal:
		items, err := itemsOf(v)
		if err != nil {
			return nil, err
		}
		i, err := at.Int64()
		if i < 0 {
			i += int64(len(items))
		}
		if err != nil || i < 0 || i >= int64(len(items)) {
			return nil, nil //nolint:nilerr // no item stands at a number beyond int64
		}
		return items[i], nil
	default:
		return nil, fmt.Errorf("a name or a number is needed, this is %s", kindOf(at))
	}
}

// slice compiles name[from:to], in characters of a text.
func (c *compiler) slice(n *ast.SliceNode) (node, error) {
	args, takes := []ast.Node{n.Node}, []operand{isText}
	for _, bound := range []ast.Node{n.From, n.To} {
		if bound != nil {
			args, takes = append(args, bound), append(takes, isNumber)
		}
	}
	return c.function(isText, takes, args, func(values []any) (any, error) {
		runes := []rune(values[0].(string))
		from, to, next := 0, len(runes), 1
		if n.From != nil {
			from, next = boundOf(values[next], len(runes)), next+1
		}
		if n.To != nil {
			to = boundOf(values[next], len(runes))
		}
		return string(runes[min(from, to):to]), nil
	})
}

// boundOf is an index within the text; a negative one counts from the end, one
// outside means the end it is nearest to.
func boundOf(v any, size int) int {
	d := v.(*apd.Decimal)
	n, err := d.Int64()
	switch {
	case err != nil && d.Negative:
		return 0
	case err != nil:
		return size
	case n < 0:
		n += int64(size)
	}
	return int(max(0, min(n, int64(size))))
}
