package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncestream/oncestream/schema"
)

// fix sets a field of a JSON payload.
type fix struct {
	path  string
	value jsontext.Value
}

type fixes []fix

// parseFixes reads field=value. The value is JSON, or else a text.
func parseFixes(texts []string) (fixes, error) {
	var all fixes
	for _, text := range texts {
		path, value, ok := strings.Cut(text, "=")
		if !ok || path == "" {
			return nil, usagef("--fix: must be field=value (got %q)", text)
		}
		v := jsontext.Value(value)
		if !v.IsValid() {
			quoted, err := jsontext.AppendQuote(nil, value)
			if err != nil {
				return nil, usagef("--fix %s: the value is no UTF-8", path)
			}
			v = quoted
		}
		all = append(all, fix{path, v})
	}
	return all, nil
}

// apply returns the payload with the fields set. All other bytes stay as they
// are: no number is read and written again.
func (f fixes) apply(payload []byte) ([]byte, error) {
	doc := jsontext.Value(payload)
	if payload == nil || !doc.IsValid() || doc.Kind() != '{' {
		return nil, errors.New("the payload is no JSON object, in which a field could be set")
	}
	for _, one := range f {
		var err error
		if doc, err = setField(doc, schema.SplitPath(one.path), one.value); err != nil {
			return nil, fmt.Errorf("set %s: %w", one.path, err)
		}
	}
	return doc, nil
}

// setField replaces the value at the path, or adds it at the end of the object
// where it is not there.
func setField(doc jsontext.Value, names []string, v jsontext.Value) (jsontext.Value, error) {
	if doc.Kind() != '{' {
		return nil, fmt.Errorf("%s has a place in an object only, and what is there is none", names[0])
	}
	from, to, members, err := findMember(doc, names[0])
	if err != nil {
		return nil, err
	}
	if from >= 0 {
		if len(names) > 1 {
			if v, err = setField(doc[from:to], names[1:], v); err != nil {
				return nil, err
			}
		}
		return slices.Concat(doc[:from], v, doc[to:]), nil
	}
	added, err := jsontext.AppendQuote(nil, names[0])
	if err != nil {
		return nil, err
	}
	if len(names) > 1 {
		if v, err = setField(jsontext.Value("{}"), names[1:], v); err != nil {
			return nil, err
		}
	}
	added = slices.Concat(added, []byte(":"), v)
	if members > 0 {
		added = slices.Concat([]byte(","), added)
	}
	end := bytes.LastIndexByte(doc, '}')
	return slices.Concat(doc[:end], added, doc[end:]), nil
}

// findMember returns where in an object the value of a member is, -1 where it
// has none of that name, and how many members it has.
func findMember(doc jsontext.Value, name string) (from, to, members int, err error) {
	from = -1
	dec := jsontext.NewDecoder(bytes.NewReader(doc))
	if _, err := dec.ReadToken(); err != nil {
		return from, to, members, err
	}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return from, to, members, err
		}
		found := token.String() == name
		value, err := dec.ReadValue()
		if err != nil {
			return from, to, members, err
		}
		members++
		if found {
			to = int(dec.InputOffset())
			from = to - len(value)
		}
	}
	return from, to, members, nil
}
