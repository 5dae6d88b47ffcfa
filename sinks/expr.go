package sinks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/oncestream/oncestream/schema"
)

// Expressions compute a column ([Computed]) or say which messages a sink sees
// ([Condition]). The grammar is that of expr-lang/expr; what it means is decided
// here, for three reasons: numbers are exact decimals and never floats, an
// operand of the wrong type is an error and not a guess, and there is nothing in
// it that could answer differently the next time: no clock, no random, no order
// of a map. An expression of 10,000 nodes is refused.
//
//	amount * 1.19                 fields by their path; numbers keep every digit, and one
//	                              that is too long for an int64 or a float is dec("…")
//	order.customer.id             fields within fields; field("a b") for other names
//	items[0].sku, len(items)      into arrays and objects; a negative index counts from the end
//	$topic, $partition, $offset   the record, by the names of [Field]
//	$key, $header.trace           texts; header("trace-id") for other names
//	$time                         a moment; date($time) is the day in UTC
//	$tombstone                    whether the record has no value
//
//	+ - * / %                     exact; + also joins texts, / must come out even
//	== != < <= > >= in            of two values of one type; null equals null only
//	and or not ?:                 of true and false; && || ! are the same
//	??                            the right side where the left one is null
//	contains startsWith endsWith  of texts
//	matches                       a text and a regular expression (RE2), written out
//	name[0:3]                     the characters of a text
//
//	round(n, digits)  div(a, b, digits)    halves go away from zero, as in PostgreSQL
//	abs  floor  ceil  min  max             of numbers
//	lower  upper  trim  replace(t, a, b)   of texts
//	len(x)            characters of a text, members of an array or object
//	text(x)  dec(t)   a value as text; a text as number
//	timestamp(t)      RFC 3339 text as a moment; moments are compared
//	date(t)           the day of a moment, in UTC
//	has(field)        whether the field occurred, be it null
//	field(path)  header(name)
//
// A missing field reads as null. Null in a calculation or a comparison of order
// is an error, so that no amount becomes null unnoticed: write `fee ?? 0`.

// Computed takes a column from an expression. The column it gives is null where
// the expression is; it is never missing. The error names the position in the
// expression, and the nearest field where one is not among fields.
//
// Fields are the decoder's, which must map each field that the expression names;
// [ExpressionPaths] and [Paths] say which. Nil checks no names.
//
// An expression that fails for a message, such as null + 1, is the message's own
// fault with [schema.ReasonValueType], and with [schema.ReasonValueRange] where
// a number has more than 2,000 digits or a quotient does not come out even.
func Computed(column, expression string, fields *schema.Fields) (Column[schema.Row], error) {
	p, err := compile(expression, fields)
	if err != nil {
		return Column[schema.Row]{}, fmt.Errorf("column %q: %w", column, err)
	}
	return Column[schema.Row]{
		Name: column, Field: expression, Uses: p.paths, OfRecord: len(p.paths) == 0,
		Value: func(m *schema.Message[schema.Row]) (schema.Value, error) {
			v, err := p.run(m)
			if err != nil {
				return schema.Value{}, err
			}
			return p.value(v)
		},
	}, nil
}

// ExpressionPaths returns the paths of the fields that an expression names, for
// the decoder's [schema.NewFields].
func ExpressionPaths(expression string) ([]string, error) {
	p, err := compile(expression, nil)
	if err != nil {
		return nil, err
	}
	return p.paths, nil
}

// program is an expression that was compiled. It does not change.
type program struct {
	text  string
	root  node
	paths []string // of the fields it reads
}

// node computes a part of an expression.
type node struct {
	eval func(m *schema.Message[schema.Row]) (any, error)
	kind operand // what eval returns besides null, where that is known
}

func compile(expression string, fields *schema.Fields) (*program, error) {
	tree, err := parser.Parse(expression)
	if bad, ok := errors.AsType[*file.Error](err); ok {
		return nil, fmt.Errorf("expression %q: at %d:%d: %s", expression, bad.Line, bad.Column+1, bad.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", expression, err)
	}
	c := &compiler{source: []rune(expression), fields: fields, seen: map[ast.Node]bool{}}
	root, err := c.node(tree.Node)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", expression, err)
	}
	slices.Sort(c.paths)
	return &program{expression, root, slices.Compact(c.paths)}, nil
}

// run computes the expression. An error is a [*schema.Fault] whose field is the
// expression, or says that the decoder does not map a field.
func (p *program) run(m *schema.Message[schema.Row]) (any, error) {
	v, err := p.root.eval(m)
	if err != nil {
		return nil, blame(err, m.Record, p.text, "")
	}
	return v, nil
}

// value is what the expression came to, as a value.
func (p *program) value(v any) (schema.Value, error) {
	value, err := toValue(v)
	if err != nil {
		return value, schema.Faultf(nil, schema.ReasonValueType, "%w", err)
	}
	return value, nil
}

// located puts the place in the expression before an error. A fault keeps its
// reason; what an inner part has located already is left as it is.
type located struct {
	at  string
	err error
}

func (l *located) Error() string { return "at " + l.at + ": " + l.err.Error() }
func (l *located) Unwrap() error { return l.err }

// position writes a place in the source as line and column, counted from 1.
func position(source []rune, from int) string {
	before := string(source[:min(from, len(source))])
	line := strings.Count(before, "\n")
	column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	return fmt.Sprintf("%d:%d", line+1, column+1)
}
