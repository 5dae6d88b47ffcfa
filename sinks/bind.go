package sinks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oncestream/oncestream/schema"
)

// bound is a column of a sink together with its target.
type bound[T any] struct {
	Column[T]
	target
}

// bind finds the target of each column. It reports all faults, not the first.
// Without columns it takes the fields that have a column of their name.
func bind[T any](t *Table, columns []Column[T], fields *schema.Fields, key []string) ([]bound[T], error) {
	if len(columns) == 0 {
		var err error
		if columns, err = fieldColumns[T](t, fields); err != nil {
			return nil, err
		}
	}
	var faults []error
	out := make([]bound[T], 0, len(columns))
	for i, c := range columns {
		tc, err := t.writable(c.Name)
		switch {
		case err != nil:
		case c.Value == nil:
			err = fmt.Errorf("column %q has no Value: make it with Field, Col or Const", c.Name)
		case slices.ContainsFunc(columns[:i], func(o Column[T]) bool { return o.Name == c.Name }):
			err = fmt.Errorf("column %q is given twice", c.Name)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		out = append(out, bound[T]{c, newTarget(tc, slices.Contains(key, c.Name))})
	}
	return out, errors.Join(faults...)
}

// fieldColumns is for bodies that are rows: any other T has no fields.
func fieldColumns[T any](t *Table, fields *schema.Fields) ([]Column[T], error) {
	if fields == nil {
		return nil, errors.New("no Columns: give them, or the Fields of the decoder to take the columns by name")
	}
	var rows []Column[schema.Row]
	for _, path := range fields.Paths() {
		names := schema.SplitPath(path)
		if len(names) != 1 {
			continue
		}
		if c, ok := t.Column(names[0]); ok && !c.Generated {
			rows = append(rows, Field(c.Name, path))
		}
	}
	columns, ok := any(rows).([]Column[T])
	switch {
	case !ok:
		return nil, errors.New("no Columns: they can be left out only where the body is a schema.Row")
	case len(columns) == 0:
		return nil, fmt.Errorf("no field has a column of its name in table %s: the fields are %s, the columns %s",
			t.Name, strings.Join(fields.Paths(), ", "), strings.Join(t.columnNames(), ", "))
	}
	return columns, nil
}

// prefixed puts the sink's name before each of the joined faults, since each
// must be understood alone.
func prefixed(err error, prefix string) error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s: %w", prefix, err)
	}
	var faults []error
	for _, e := range joined.Unwrap() {
		faults = append(faults, prefixed(e, prefix))
	}
	return errors.Join(faults...)
}
