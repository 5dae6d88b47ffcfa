package sinks

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncestream/oncestream/schema"
)

// document is JSON text that is an object or an array, read only as far as an
// expression looks into it.
type document []byte

var errBroken = errors.New("the JSON of the field is broken")

func (d document) array() bool { return d[0] == '[' }

// each calls visit for each member, with its name or an empty one, until visit
// answers false.
func (d document) each(visit func(name string, v jsontext.Value) bool) error {
	dec := jsontext.NewDecoder(bytes.NewReader(d))
	if _, err := dec.ReadToken(); err != nil {
		return errBroken
	}
	for next := dec.PeekKind(); next != ']' && next != '}'; next = dec.PeekKind() {
		name := ""
		if !d.array() {
			token, err := dec.ReadToken()
			if err != nil {
				return errBroken
			}
			name = token.String()
		}
		v, err := dec.ReadValue()
		if err != nil {
			return errBroken
		}
		if !visit(name, v.Clone()) {
			return nil
		}
	}
	return nil
}

func (d document) len() (n int, err error) {
	err = d.each(func(string, jsontext.Value) bool { n++; return true })
	return n, err
}

// member returns the named member of an object, nil where there is none.
func (d document) member(name string) (any, error) {
	var found jsontext.Value
	err := d.each(func(n string, v jsontext.Value) bool {
		if n == name {
			found = v
		}
		return found == nil
	})
	if err != nil || found == nil {
		return nil, err
	}
	return fromJSON(found)
}

// items returns the members of an array.
func (d document) items() (elements, error) {
	var all elements
	var bad error
	err := d.each(func(_ string, v jsontext.Value) bool {
		var item any
		item, bad = fromJSON(v)
		all = append(all, item)
		return bad == nil
	})
	return all, errors.Join(err, bad)
}

func fromJSON(raw jsontext.Value) (any, error) {
	v, err := schema.ValueOf(raw)
	if err != nil {
		return nil, err
	}
	return fromValue(v)
}
