package sinks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/oncestream/oncestream/schema"
)

// compiler turns the parser's tree into functions.
type compiler struct {
	source []rune
	fields *schema.Fields
	paths  []string
	seen   map[ast.Node]bool
}

// message is what an expression is computed for.
type message = *schema.Message[schema.Row]

// errShared refuses a < b < c and a ?: b: the parser puts one node in two places,
// which nested would double the work with each level.
var errShared = errors.New("this would be computed twice: write a < b and b < c, or a ?? b")

// node compiles one node of the tree. Errors are located.
func (c *compiler) node(n ast.Node) (node, error) {
	if c.seen[n] {
		return node{}, c.locate(n, errShared)
	}
	c.seen[n] = true
	out, err := c.kinds(n)
	if err != nil {
		return out, c.locate(n, err)
	}
	if out.eval == nil {
		return out, nil
	}
	eval := out.eval
	out.eval = func(m message) (any, error) {
		v, err := eval(m)
		if err != nil {
			err = c.fault(n, err)
		}
		return v, err
	}
	return out, nil
}

// locate adds the place to an error, unless an inner node has done so.
func (c *compiler) locate(n ast.Node, err error) error {
	if _, ok := errors.AsType[*located](err); ok {
		return err
	}
	return &located{position(c.source, n.Location().From), err}
}

// fault is an error of a message, unless the decoder maps no such field.
func (c *compiler) fault(n ast.Node, err error) error {
	if errors.Is(err, errUnmapped) {
		return err
	}
	f, ok := errors.AsType[*schema.Fault](err)
	if ok && errors.As(err, new(*located)) {
		return err
	}
	reason := schema.ReasonValueType
	if ok {
		reason, err = f.Reason, f.Err
	}
	return &schema.Fault{Reason: reason, Err: c.locate(n, err)}
}

func (c *compiler) kinds(n ast.Node) (node, error) {
	switch n := n.(type) {
	case *ast.NilNode:
		return constant(nil), nil
	case *ast.BoolNode:
		return constant(n.Value), nil
	case *ast.StringNode:
		return constant(n.Value), nil
	case *ast.IntegerNode, *ast.FloatNode:
		return c.number(n)
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode:
		return c.access(n)
	case *ast.SliceNode:
		return c.slice(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.ArrayNode:
		return c.array(n)
	case *ast.CallNode:
		return c.call(n.Callee.String(), n.Arguments)
	case *ast.BuiltinNode:
		return c.call(n.Name, n.Arguments)
	default:
		return node{}, errors.New("this is no part of the language")
	}
}

func constant(v any) node {
	return node{func(message) (any, error) { return v, nil }, kindOf(v)}
}

// number reads the literal again, for the parser's tree holds a float.
func (c *compiler) number(n ast.Node) (node, error) {
	at := n.Location()
	literal := strings.ReplaceAll(string(c.source[at.From:at.To]), "_", "")
	if _, ok := scanDecimal([]byte(literal)); !ok {
		return node{}, fmt.Errorf("%s is no decimal number", literal)
	}
	v, err := parseNumber(literal)
	if err != nil {
		return node{}, err
	}
	return constant(v), nil
}

// access compiles a.b.c: the field of the longest path that the decoder maps,
// and the way from there into its JSON.
func (c *compiler) access(n ast.Node) (node, error) {
	if chain, ok := n.(*ast.ChainNode); ok {
		return c.node(chain.Node)
	}
	names, ok := chainOf(n)
	if !ok {
		return c.inside(n.(*ast.MemberNode))
	}
	if strings.HasPrefix(names[0], "$") {
		return ofRecord(strings.Join(names, "."))
	}
	path := schema.JoinPath(names...)
	if len(names) > 1 && c.fields != nil && c.fields.Index(path) < 0 && c.mapsPrefix(names) {
		return c.inside(n.(*ast.MemberNode))
	}
	return c.field(path)
}

// mapsPrefix reports whether an outer part of the path is mapped.
func (c *compiler) mapsPrefix(names []string) bool {
	for n := len(names) - 1; n > 0; n-- {
		if c.fields.Index(schema.JoinPath(names[:n]...)) >= 0 {
			return true
		}
	}
	return false
}

// chainOf returns the names of a.b["c"], and false where it is anything else.
func chainOf(n ast.Node) ([]string, bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return []string{n.Value}, true
	case *ast.ChainNode:
		return chainOf(n.Node)
	case *ast.MemberNode:
		names, ok := chainOf(n.Node)
		name, is := n.Property.(*ast.StringNode)
		if ok && is {
			return append(names, name.Value), true
		}
	}
	return nil, false
}

// errUnmapped is a fault of the configuration, not of a message.
var errUnmapped = errors.New("the decoder does not map the field")

func (c *compiler) field(path string) (node, error) {
	place, err := c.place(path)
	if err != nil {
		return node{}, err
	}
	return node{eval: func(m message) (any, error) {
		v, err := place.get(m.Body)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnmapped, err)
		}
		return fromValue(v)
	}}, nil
}

func (c *compiler) place(path string) (*fieldPlace, error) {
	if c.fields != nil && c.fields.Index(path) < 0 {
		return nil, fmt.Errorf("no field %q%s", path, meant(path, slices.Concat(c.fields.Paths(), pseudoNames)))
	}
	c.paths = append(c.paths, path)
	return &fieldPlace{path: path}, nil
}

func ofRecord(path string) (node, error) {
	switch path {
	case "$time":
		return node{func(m message) (any, error) { return m.Time.UTC(), nil }, isMoment}, nil
	case "$tombstone":
		return node{func(m message) (any, error) { return m.Tombstone(), nil }, isBool}, nil
	}
	value := pseudoField(path)
	if value == nil {
		return node{}, fmt.Errorf("no pseudo-field %q%s", path, meant(path, pseudoNames))
	}
	return node{eval: func(m message) (any, error) { return fromValue(value(m.Record)) }}, nil
}

var pseudoNames = []string{"$key", "$topic", "$partition", "$offset", "$time", "$tombstone", "$header."}

// typed compiles an operand that must be of the kind. What is known to be of
// another one is an error now, else of the message.
func (c *compiler) typed(n ast.Node, want operand) (node, error) {
	out, err := c.node(n)
	if err != nil {
		return out, err
	}
	if out.kind == want {
		return out, nil
	}
	if out.kind != unknown {
		return out, c.locate(n, fmt.Errorf("%s is needed, this is %s", want, out.kind))
	}
	eval := out.eval
	return node{func(m message) (any, error) {
		v, err := eval(m)
		if got := kindOf(v); err == nil && got != want {
			err = c.fault(n, fmt.Errorf("%s is needed, this is %s", want, got))
		}
		return v, err
	}, want}, nil
}
