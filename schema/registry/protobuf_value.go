package registry

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/oncestream/oncestream/schema"
)

// placeMessage sets the values of what is mapped in m.
func placeMessage(n *schema.Tree, m protoreflect.Message, values []schema.Value) error {
	fields := m.Descriptor().Fields()
	for name, kid := range n.Kids() {
		fd := fields.ByName(protoreflect.Name(name))
		if fd == nil || absent(m, fd) {
			continue
		}
		if err := placeField(kid, fd, m.Get(fd), values); err != nil {
			return fmt.Errorf("in %q: %w", name, err)
		}
	}
	return nil
}

// absent reports whether fd is absent from m, where Protobuf can tell.
func absent(m protoreflect.Message, fd protoreflect.FieldDescriptor) bool {
	return fd.HasPresence() && !m.Has(fd)
}

// placeField sets the values of n and of those below it.
func placeField(n *schema.Tree, fd protoreflect.FieldDescriptor, v protoreflect.Value, values []schema.Value) error {
	if n.Leaf() {
		value, err := fieldValue(fd, v)
		if err != nil {
			return err
		}
		n.Set(values, value)
	}
	switch {
	case !n.Inner() || fd.IsList():
		return nil
	case fd.IsMap():
		return placeEntries(n, fd, v.Map(), values)
	case fd.Message() != nil:
		return placeMessage(n, v.Message(), values)
	}
	return nil
}

// placeEntries sets the values of what is mapped in a map with string keys.
func placeEntries(n *schema.Tree, fd protoreflect.FieldDescriptor, entries protoreflect.Map, values []schema.Value) error {
	if fd.MapKey().Kind() != protoreflect.StringKind {
		return nil
	}
	for name, kid := range n.Kids() {
		v := entries.Get(protoreflect.ValueOfString(name).MapKey())
		if !v.IsValid() {
			continue
		}
		if err := placeField(kid, fd.MapValue(), v, values); err != nil {
			return fmt.Errorf("in %q: %w", name, err)
		}
	}
	return nil
}

// fieldValue returns the value of a field.
func fieldValue(fd protoreflect.FieldDescriptor, v protoreflect.Value) (schema.Value, error) {
	switch {
	case fd.IsList():
		doc, err := appendList(nil, fd, v.List())
		return arrayValue(doc), err
	case fd.IsMap():
		doc, err := appendMap(nil, fd, v.Map())
		return objectValue(doc), err
	default:
		return singleValue(fd, v)
	}
}

// singleValue returns the value of a field that is not repeated, or of one
// element of a list or map.
func singleValue(fd protoreflect.FieldDescriptor, v protoreflect.Value) (schema.Value, error) {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return boolValue(v.Bool()), nil
	case protoreflect.EnumKind:
		return enumValue(fd, v.Enum()), nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return uintValue(v.Uint()), nil
	case protoreflect.FloatKind:
		return floatValue(v.Float(), 32), nil
	case protoreflect.DoubleKind:
		return floatValue(v.Float(), 64), nil
	case protoreflect.StringKind:
		return textValue(v.String()) // proto2 strings come unchecked
	case protoreflect.BytesKind:
		return bytesValue(v.Bytes()), nil
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return messageValue(v.Message())
	default:
		return intValue(v.Int()), nil
	}
}

func enumValue(fd protoreflect.FieldDescriptor, n protoreflect.EnumNumber) schema.Value {
	switch name := fd.Enum().Values().ByNumber(n); {
	case fd.Enum().FullName() == "google.protobuf.NullValue":
		return null()
	case name != nil:
		return text([]byte(name.Name()))
	}
	return intValue(int64(n))
}

// messageValue returns the value of a message: that of a well-known type, or
// its JSON text.
func messageValue(m protoreflect.Message) (schema.Value, error) {
	if known := wellKnown(m.Descriptor()); known != nil {
		return known(m)
	}
	dst := []byte{'{'}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if absent(m, fd) {
			continue
		}
		v, err := fieldValue(fd, m.Get(fd))
		if err != nil {
			return schema.Value{}, err
		}
		dst = appendJSON(appendName(dst, fd.Name()), v)
	}
	return objectValue(append(dst, '}')), nil
}

func appendList(dst []byte, fd protoreflect.FieldDescriptor, list protoreflect.List) ([]byte, error) {
	dst = append(dst, '[')
	for i := range list.Len() {
		v, err := singleValue(fd, list.Get(i))
		if err != nil {
			return dst, err
		}
		dst = appendJSON(appendComma(dst), v)
	}
	return append(dst, ']'), nil
}

// appendMap sorts the keys, for Protobuf does not, and the text must not differ
// from one decoding to the next.
func appendMap(dst []byte, fd protoreflect.FieldDescriptor, entries protoreflect.Map) ([]byte, error) {
	keys := make([]protoreflect.MapKey, 0, entries.Len())
	entries.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return cmp.Compare(a.String(), b.String()) })
	dst = append(dst, '{')
	for _, k := range keys {
		if err := checkText(k.String()); err != nil {
			return dst, fmt.Errorf("a name: %w", err)
		}
		v, err := singleValue(fd.MapValue(), entries.Get(k))
		if err != nil {
			return dst, err
		}
		dst = appendJSON(appendName(dst, k.String()), v)
	}
	return append(dst, '}'), nil
}
