package sinks

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/apd/v3"
	"github.com/expr-lang/expr/ast"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncestream/oncestream/schema"
)

// function is one that expressions may call; all are pure.
type function struct {
	gives operand
	takes []operand // unknown takes null too
	call  func(args []any) (any, error)
}

func functions() map[string]function {
	one, two := []operand{isNumber}, []operand{isNumber, isNumber}
	return map[string]function{
		"abs":       {isNumber, one, numeric(func(d *apd.Decimal) (any, error) { return new(apd.Decimal).Abs(d), nil })},
		"floor":     {isNumber, one, numeric(func(d *apd.Decimal) (any, error) { return whole(d, true) })},
		"ceil":      {isNumber, one, numeric(func(d *apd.Decimal) (any, error) { return whole(d, false) })},
		"min":       {isNumber, two, func(args []any) (any, error) { return extreme(args, -1) }},
		"max":       {isNumber, two, func(args []any) (any, error) { return extreme(args, 1) }},
		"round":     {isNumber, two, func(args []any) (any, error) { return divide(args[0], apd.New(1, 0), args[1]) }},
		"div":       {isNumber, []operand{isNumber, isNumber, isNumber}, func(args []any) (any, error) { return divide(args[0], args[1], args[2]) }},
		"lower":     {isText, []operand{isText}, textual(strings.ToLower)},
		"upper":     {isText, []operand{isText}, textual(strings.ToUpper)},
		"trim":      {isText, []operand{isText}, textual(strings.TrimSpace)},
		"replace":   {isText, []operand{isText, isText, isText}, replace},
		"len":       {isNumber, []operand{unknown}, func(args []any) (any, error) { return length(args[0]) }},
		"text":      {unknown, []operand{unknown}, toText},
		"dec":       {unknown, []operand{unknown}, toDecimal},
		"timestamp": {isMoment, []operand{isText}, toMoment},
		"date":      {isText, []operand{isMoment}, func(args []any) (any, error) { return args[0].(time.Time).UTC().Format(time.DateOnly), nil }},
	}
}

// call compiles a call. Three functions take a name and no value.
func (c *compiler) call(name string, args []ast.Node) (node, error) {
	switch name {
	case "has":
		return c.has(args)
	case "field", "header":
		return c.named(name, args)
	}
	all := functions()
	f, ok := all[name]
	if !ok {
		names := slices.Concat(slices.Sorted(maps.Keys(all)), []string{"has", "field", "header"})
		return node{}, fmt.Errorf("no function %s%s", name, meant(name, names))
	}
	if len(args) != len(f.takes) {
		return node{}, fmt.Errorf("%s takes %d arguments, not %d", name, len(f.takes), len(args))
	}
	return c.function(f.gives, f.takes, args, f.call)
}

func (c *compiler) function(gives operand, takes []operand, args []ast.Node, call func(args []any) (any, error)) (node, error) {
	var faults []error
	operands := make([]node, len(args))
	for i := range args {
		var err error
		if takes[i] == unknown {
			operands[i], err = c.node(args[i])
		} else {
			operands[i], err = c.typed(args[i], takes[i])
		}
		faults = append(faults, err)
	}
	return node{func(m message) (any, error) {
		values := make([]any, len(operands))
		for i := range operands {
			var err error
			if values[i], err = operands[i].eval(m); err != nil {
				return nil, err
			}
		}
		return call(values)
	}, gives}, errors.Join(faults...)
}

// has asks whether the field occurred.
func (c *compiler) has(args []ast.Node) (node, error) {
	if len(args) != 1 {
		return node{}, errors.New("has takes one field")
	}
	names, ok := chainOf(args[0])
	if !ok || strings.HasPrefix(names[0], "$") {
		return node{}, errors.New("has takes the path of a field")
	}
	place, err := c.place(schema.JoinPath(names...))
	return node{func(m message) (any, error) {
		v, err := place.get(m.Body)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnmapped, err)
		}
		return v.Kind != schema.Missing, nil
	}, isBool}, err
}

// named compiles field("path") and header("name").
func (c *compiler) named(function string, args []ast.Node) (node, error) {
	if len(args) == 1 {
		if name, ok := args[0].(*ast.StringNode); ok && function == "field" {
			return c.field(name.Value)
		} else if ok {
			return ofRecord("$header." + name.Value)
		}
	}
	return node{}, fmt.Errorf("%s takes one name, written out as a text", function)
}

func numeric(f func(d *apd.Decimal) (any, error)) func(args []any) (any, error) {
	return func(args []any) (any, error) { return f(args[0].(*apd.Decimal)) }
}

func textual(f func(string) string) func(args []any) (any, error) {
	return func(args []any) (any, error) { return f(args[0].(string)), nil }
}

// whole returns the nearest whole number below or above. Every digit was
// allowed before, so that the context may round here.
func whole(d *apd.Decimal, down bool) (any, error) {
	c := apd.BaseContext.WithPrecision(2 * mostDigits)
	out := new(apd.Decimal)
	round := c.Ceil
	if down {
		round = c.Floor
	}
	if _, err := round(out, d); err != nil {
		return nil, errDigits
	}
	return out, nil
}

// extreme returns the lesser of two numbers where sign is -1, the greater one
// where it is 1; the first of two that are equal.
func extreme(args []any, sign int) (any, error) {
	n, err := compare(args[1], args[0])
	if n == sign {
		return args[1], err
	}
	return args[0], err
}

func divide(a, b, digits any) (any, error) {
	d, ok := scanDecimal([]byte(digits.(*apd.Decimal).Text('f')))
	n, whole := d.int64()
	if !ok || !whole || n < 0 || n > mostDigits {
		return nil, fmt.Errorf("the digits are a whole number from 0 to %d", mostDigits)
	}
	return rounded(a.(*apd.Decimal), b.(*apd.Decimal), int(n))
}

// replace bounds what it makes, for each call may make a text much longer.
func replace(args []any) (any, error) {
	const most = 1 << 20
	t, from, to := args[0].(string), args[1].(string), args[2].(string)
	if grown := len(t) + strings.Count(t, from)*(len(to)-len(from)); grown > most && grown > len(t) {
		return nil, fmt.Errorf("the text would have %d bytes, and %d are allowed", grown, most)
	}
	return strings.ReplaceAll(t, from, to), nil
}

func length(v any) (any, error) {
	n, err := 0, error(nil)
	switch v := v.(type) {
	case string:
		n = utf8.RuneCountInString(v)
	case elements:
		n = len(v)
	case document:
		n, err = v.len()
	default:
		err = fmt.Errorf("%s has no length", kindOf(v))
	}
	return apd.New(int64(n), 0), err
}

// toText keeps null.
func toText(args []any) (any, error) {
	if args[0] == nil {
		return nil, nil
	}
	return textOf(args[0])
}

// toDecimal reads a text as numeric columns do, and keeps numbers and null.
func toDecimal(args []any) (any, error) {
	switch v := args[0].(type) {
	case nil, *apd.Decimal:
		return v, nil
	case string:
		if _, ok := scanDecimal([]byte(v)); !ok {
			return nil, fmt.Errorf("%q is no decimal number", v)
		}
		return parseNumber(v)
	default:
		return nil, fmt.Errorf("%s is no decimal number", kindOf(v))
	}
}

// toMoment reads a text as timestamptz columns do.
func toMoment(args []any) (any, error) {
	c := TableColumn{Type: "timestamptz", BaseOID: pgtype.TimestamptzOID, Mod: -1}
	v := textValue([]byte(args[0].(string)))
	st, infinite, err := stampOf(&c, v)
	switch {
	case err != nil:
		return nil, err
	case infinite != 0:
		return nil, alien(&c, v, "infinity is no moment")
	case !st.zoned:
		return nil, alien(&c, v, "it has no offset, and no zone is guessed; send a Z or an offset")
	}
	days := int64(st.days+epochDays) * 86400
	return time.UnixMicro((days-int64(st.offset))*1e6 + st.micros).UTC(), nil
}
