package sinks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/apd/v3"
	"github.com/expr-lang/expr/ast"
)

func (c *compiler) unary(n *ast.UnaryNode) (node, error) {
	if n.Operator == "not" || n.Operator == "!" {
		of, err := c.typed(n.Node, isBool)
		return node{func(m message) (any, error) {
			v, err := of.eval(m)
			return err == nil && !v.(bool), err
		}, isBool}, err
	}
	of, err := c.typed(n.Node, isNumber)
	if n.Operator == "+" {
		return of, err
	}
	return node{func(m message) (any, error) {
		v, err := of.eval(m)
		if err != nil {
			return nil, err
		}
		return new(apd.Decimal).Neg(v.(*apd.Decimal)), nil
	}, isNumber}, err
}

func (c *compiler) binary(n *ast.BinaryNode) (node, error) {
	switch n.Operator {
	case "and", "&&", "or", "||":
		return c.logical(n, n.Operator == "and" || n.Operator == "&&")
	case "??":
		return c.coalesce(n)
	case "==", "!=", "<", "<=", ">", ">=":
		return c.comparison(n)
	case "in":
		return c.in(n)
	case "matches":
		return c.matches(n)
	case "contains":
		return c.texts(n, strings.Contains)
	case "startsWith":
		return c.texts(n, strings.HasPrefix)
	case "endsWith":
		return c.texts(n, strings.HasSuffix)
	case "+":
		return c.plus(n)
	case "-":
		return c.arithmetic(n, calculate((*apd.Context).Sub))
	case "*":
		return c.arithmetic(n, calculate((*apd.Context).Mul))
	case "/":
		return c.arithmetic(n, quotient)
	case "%":
		return c.arithmetic(n, remainder)
	default:
		return node{}, fmt.Errorf("operator %s is no part of the language", n.Operator)
	}
}

// logical asks the right side only where the left one leaves it open.
func (c *compiler) logical(n *ast.BinaryNode, and bool) (node, error) {
	left, err := c.typed(n.Left, isBool)
	right, err2 := c.typed(n.Right, isBool)
	return node{func(m message) (any, error) {
		v, err := left.eval(m)
		if err != nil || v.(bool) != and {
			return v, err
		}
		return right.eval(m)
	}, isBool}, errors.Join(err, err2)
}

func (c *compiler) coalesce(n *ast.BinaryNode) (node, error) {
	left, err := c.node(n.Left)
	right, err2 := c.node(n.Right)
	return node{func(m message) (any, error) {
		v, err := left.eval(m)
		if err != nil || v != nil {
			return v, err
		}
		return right.eval(m)
	}, common(left.kind, right.kind)}, errors.Join(err, err2)
}

// common is the kind of two nodes of which either may be the result.
func common(a, b operand) operand {
	if a == b {
		return a
	}
	return unknown
}

// both compiles two operands, and computes them before f.
func (c *compiler) both(n *ast.BinaryNode, result operand, f func(a, b any) (any, error)) (node, operand, operand, error) {
	left, err := c.node(n.Left)
	right, err2 := c.node(n.Right)
	return node{func(m message) (any, error) {
		a, err := left.eval(m)
		if err != nil {
			return nil, err
		}
		b, err := right.eval(m)
		if err != nil {
			return nil, err
		}
		return f(a, b)
	}, result}, left.kind, right.kind, errors.Join(err, err2)
}

func (c *compiler) comparison(n *ast.BinaryNode) (node, error) {
	out, a, b, err := c.both(n, isBool, comparisons[n.Operator])
	if err != nil {
		return out, err
	}
	if equality := n.Operator == "==" || n.Operator == "!="; equality && (a == isNull || b == isNull) {
		return out, nil
	}
	if a != unknown && b != unknown && a != b {
		return out, fmt.Errorf("%s and %s cannot be compared", a, b)
	}
	return out, nil
}

// comparisons are what the operators mean.
var comparisons = map[string]func(a, b any) (any, error){
	"==": func(a, b any) (any, error) { return same(a, b) },
	"!=": func(a, b any) (any, error) { is, err := same(a, b); return !is, err },
	"<":  func(a, b any) (any, error) { n, err := compare(a, b); return n < 0, err },
	"<=": func(a, b any) (any, error) { n, err := compare(a, b); return n <= 0, err },
	">":  func(a, b any) (any, error) { n, err := compare(a, b); return n > 0, err },
	">=": func(a, b any) (any, error) { n, err := compare(a, b); return n >= 0, err },
}

func (c *compiler) arithmetic(n *ast.BinaryNode, f func(x, y *apd.Decimal) (any, error)) (node, error) {
	return c.function(isNumber, []operand{isNumber, isNumber}, []ast.Node{n.Left, n.Right}, func(args []any) (any, error) {
		return f(args[0].(*apd.Decimal), args[1].(*apd.Decimal))
	})
}

// plus adds numbers and joins texts, as the first operand whose kind is known
// says, or else the message.
func (c *compiler) plus(n *ast.BinaryNode) (node, error) {
	add := calculate((*apd.Context).Add)
	out, a, b, err := c.both(n, unknown, func(a, b any) (any, error) {
		if x, ok := a.(*apd.Decimal); ok {
			if y, ok := b.(*apd.Decimal); ok {
				return add(x, y)
			}
		}
		if x, ok := a.(string); ok {
			if y, ok := b.(string); ok {
				return x + y, nil
			}
		}
		return nil, fmt.Errorf("%s and %s cannot be added", kindOf(a), kindOf(b))
	})
	if err != nil {
		return out, err
	}
	summands := []operand{unknown, isNumber, isText}
	if !slices.Contains(summands, a) || !slices.Contains(summands, b) || a != b && a != unknown && b != unknown {
		return out, fmt.Errorf("%s and %s cannot be added", shownKind(a), shownKind(b))
	}
	out.kind = a
	if a == unknown {
		out.kind = b
	}
	return out, nil
}

func shownKind(k operand) operand {
	if k == unknown {
		return "a field"
	}
	return k
}

func (c *compiler) conditional(n *ast.ConditionalNode) (node, error) {
	cond, err := c.typed(n.Cond, isBool)
	yes, err2 := c.node(n.Exp1)
	no, err3 := c.node(n.Exp2)
	return node{func(m message) (any, error) {
		v, err := cond.eval(m)
		switch {
		case err != nil:
			return nil, err
		case v.(bool):
			return yes.eval(m)
		default:
			return no.eval(m)
		}
	}, common(yes.kind, no.kind)}, errors.Join(err, err2, err3)
}
