package sinks

import (
	"fmt"
	"strings"

	"github.com/oncestream/oncestream/schema"
)

// Conversion is a way to read a value that its JSON type does not tell, such as
// a number that is a time; see [Column.As].
type Conversion struct {
	// Name is what the pipeline file calls it.
	Name string
	// Takes and Gives say in words what it reads and what comes of it.
	Takes, Gives string

	apply func(v schema.Value) (schema.Value, error)
}

// Conversions returns all conversions, in the order in which the documentation
// lists them.
func Conversions() []Conversion {
	whole := "number, or text of one"
	return []Conversion{
		{"epoch_seconds", whole, "time; fractions to the nanosecond", epoch(9)},
		{"epoch_millis", whole, "time; fractions to the nanosecond", epoch(6)},
		{"epoch_micros", whole, "time; fractions to the nanosecond", epoch(3)},
		{"epoch_nanos", whole, "time", epoch(0)},
		{"epoch_days", whole, "date", epochDate},
		{"time_millis", whole, "time of day, from milliseconds since midnight", timeOfDay(3)},
		{"time_micros", whole, "time of day, from microseconds since midnight", timeOfDay(0)},
		{"truncate", "text of a time", "the same, without what is below a microsecond", truncate},
		{"strip_nul", "text", "the same, without characters U+0000", stripNUL},
		{"base64", "text, padded or not, of either alphabet", "bytes", decodeBase64},
		{"hex", "text", "bytes", decodeHex},
		{"decimal", `{"scale": 2, "value": base64}; numbers and their text stay`, "number, from the bytes of a two's complement integer", scaledDecimal},
		{"decimal:SCALE", "bytes, or base64 text", "number of the scale given, such as decimal:2", nil},
	}
}

// As returns the column with its value read by the named conversions, one after
// the other: As("epoch_nanos", "truncate"). A missing value stays missing and a
// null one null. A value that a conversion cannot read is its message's own
// fault. The error is that of a name which is not among [Conversions].
func (c Column[T]) As(names ...string) (Column[T], error) {
	for _, name := range names {
		apply, err := conversionOf(name)
		if err != nil {
			return c, fmt.Errorf("column %q: %w", c.Name, err)
		}
		c.Value = converted(c.Value, apply)
	}
	return c, nil
}

func converted[T any](value func(*schema.Message[T]) (schema.Value, error), apply func(schema.Value) (schema.Value, error)) func(*schema.Message[T]) (schema.Value, error) {
	return func(m *schema.Message[T]) (schema.Value, error) {
		v, err := value(m)
		if err != nil || !v.Present() {
			return v, err
		}
		return apply(v)
	}
}

func conversionOf(name string) (func(schema.Value) (schema.Value, error), error) {
	if scale, ok := strings.CutPrefix(name, "decimal:"); ok {
		return fixedDecimal(scale)
	}
	all := Conversions()
	names := make([]string, len(all))
	for i, c := range all {
		if c.Name == name && c.apply != nil {
			return c.apply, nil
		}
		names[i] = c.Name
	}
	return nil, fmt.Errorf("no conversion %q%s; there are %s", name, meant(name, names), strings.Join(names, ", "))
}

// unreadable is a value of which a conversion can make nothing.
func unreadable(v schema.Value, conversion, why string) error {
	return schema.Faultf(nil, schema.ReasonValueType, "%s as %s: %s", shown(v), conversion, why)
}

// outside is a value that a conversion reads, and that would lose something.
func outside(v schema.Value, conversion, why string) error {
	return schema.Faultf(nil, schema.ReasonValueRange, "%s as %s: %s", shown(v), conversion, why)
}
