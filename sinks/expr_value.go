package sinks

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/apd/v3"

	"github.com/oncestream/oncestream/schema"
)

// While an expression runs, a value is nil (null and missing), a bool, a
// *apd.Decimal, a string, a time.Time, a document (JSON that is an object or an
// array) or a list (an array that the expression itself writes).

// kind names the types of values, for errors and for what is known beforehand.
type operand string

const (
	unknown  operand = "" // not known before a message comes
	isNull   operand = "null"
	isBool   operand = "true or false"
	isNumber operand = "a number"
	isText   operand = "a text"
	isMoment operand = "a moment"
	isObject operand = "an object"
	isArray  operand = "an array"
)

type elements []any

func kindOf(v any) operand {
	switch v := v.(type) {
	case bool:
		return isBool
	case *apd.Decimal:
		return isNumber
	case string:
		return isText
	case time.Time:
		return isMoment
	case elements:
		return isArray
	case document:
		if v.array() {
			return isArray
		}
		return isObject
	default:
		return isNull
	}
}

// fromValue is a field's value as expressions see it.
func fromValue(v schema.Value) (any, error) {
	switch v.Kind {
	case schema.Bool:
		return string(v.Raw) == "true", nil
	case schema.Number:
		return parseNumber(string(v.Raw))
	case schema.String:
		return string(v.Raw), nil
	case schema.Bytes:
		if !utf8.Valid(v.Raw) {
			return nil, errors.New("the bytes are no UTF-8, and an expression reads text")
		}
		return string(v.Raw), nil
	case schema.Object, schema.Array:
		return document(v.Raw), nil
	default:
		return nil, nil
	}
}

// toValue is what an expression came to, for a column.
func toValue(v any) (schema.Value, error) {
	switch v := v.(type) {
	case bool:
		return schema.Value{Kind: schema.Bool, Raw: strconv.AppendBool(nil, v)}, nil
	case time.Time:
		return textValue(v.UTC().AppendFormat(nil, time.RFC3339Nano)), nil
	case document:
		if v.array() {
			return schema.Value{Kind: schema.Array, Raw: v}, nil
		}
		return schema.Value{Kind: schema.Object, Raw: v}, nil
	case elements:
		return schema.Value{}, errors.New("the expression is an array; it can only be the right side of in")
	default:
		return schema.ValueOf(v) // nil, a text or a decimal
	}
}

// textOf is a value as text: numbers with their digits, moments as RFC 3339,
// documents as they were sent.
func textOf(v any) (string, error) {
	if d, ok := v.(*apd.Decimal); ok {
		return d.Text('f'), nil
	}
	value, err := toValue(v)
	return string(value.Raw), err
}

// mostDigits bounds the work that one number can cause.
const mostDigits = 2000

var errDigits = schema.Faultf(nil, schema.ReasonValueRange, "a number has more than %d digits", mostDigits)

// exact is arithmetic in which a digit that is lost is an error.
func exact() *apd.Context {
	c := apd.BaseContext.WithPrecision(mostDigits)
	c.MaxExponent, c.MinExponent = mostDigits, -mostDigits
	c.Traps |= apd.Inexact | apd.Rounded | apd.Subnormal | apd.Clamped
	return c
}

func parseNumber(lit string) (any, error) {
	d, _, err := apd.NewFromString(lit)
	if err != nil {
		return nil, errDigits // the literal was checked when it was read, so it is too large
	}
	return checkDigits(d)
}

func checkDigits(d *apd.Decimal) (any, error) {
	if d.NumDigits() > mostDigits || d.Exponent > mostDigits || d.Exponent < -mostDigits {
		return nil, errDigits
	}
	return d, nil
}

func calculate(f func(c *apd.Context, d, x, y *apd.Decimal) (apd.Condition, error)) func(x, y *apd.Decimal) (any, error) {
	c := exact()
	return func(x, y *apd.Decimal) (any, error) {
		d := new(apd.Decimal)
		if _, err := f(c, d, x, y); err != nil {
			return nil, errDigits
		}
		return d, nil
	}
}

// remainder has the sign of x, as in PostgreSQL.
func remainder(x, y *apd.Decimal) (any, error) {
	if y.IsZero() {
		return nil, errZero
	}
	return calculate((*apd.Context).Rem)(x, y)
}

var errZero = schema.Faultf(nil, schema.ReasonValueRange, "division by zero")

func rat(d *apd.Decimal) *big.Rat {
	r, _ := new(big.Rat).SetString(d.Text('f')) // digits and a point, so it is a number
	return r
}

// quotient is exact, or an error that names the remedy.
func quotient(x, y *apd.Decimal) (any, error) {
	if y.IsZero() {
		return nil, errZero
	}
	q := new(big.Rat).Quo(rat(x), rat(y))
	digits, even := q.FloatPrec()
	if !even {
		return nil, schema.Faultf(nil, schema.ReasonValueRange, "%s / %s does not come out even: use div(a, b, digits)", x.Text('f'), y.Text('f'))
	}
	return parseNumber(q.FloatString(digits))
}

// rounded divides with so many digits after the point. [big.Rat.FloatString]
// rounds halves away from zero, as numeric does.
func rounded(x, y *apd.Decimal, digits int) (any, error) {
	if y.IsZero() {
		return nil, errZero
	}
	return parseNumber(new(big.Rat).Quo(rat(x), rat(y)).FloatString(digits))
}

// compare orders two values of one kind.
func compare(a, b any) (int, error) {
	switch x := a.(type) {
	case *apd.Decimal:
		if y, ok := b.(*apd.Decimal); ok {
			return x.Cmp(y), nil
		}
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), nil
		}
	case time.Time:
		if y, ok := b.(time.Time); ok {
			return x.Compare(y), nil
		}
	}
	return 0, fmt.Errorf("%s and %s have no order", kindOf(a), kindOf(b))
}

// same compares two values of one kind; null equals null only.
func same(a, b any) (bool, error) {
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	x, ok := a.(bool)
	y, both := b.(bool)
	if ok && both {
		return x == y, nil
	}
	n, err := compare(a, b)
	if err != nil {
		return false, fmt.Errorf("%s and %s cannot be compared", kindOf(a), kindOf(b))
	}
	return n == 0, nil
}
