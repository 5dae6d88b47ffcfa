package registry

import (
	"context"
	"fmt"

	"github.com/bufbuild/protocompile"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/oncestream/oncestream/schema"
)

// Protobuf returns the decoder of framed Protobuf messages into rows of the
// given fields. The message's type is the one that the frame's message index
// names in the schema. A path's names are those of the schema (order_id, not
// orderId) and lead into nested messages and maps with string keys.
//
//	bool                       Bool
//	int32 … uint64, fixed …    Number, every digit
//	float, double              Number, the shortest that is the same float; the
//	                           String NaN, Infinity or -Infinity
//	string                     String; invalid UTF-8 is a decode fault
//	bytes                      Bytes
//	enum                       String, its name; a number without a name is a Number
//	message, repeated, map     Object or Array, JSON text; bytes are base64 in it
//	google.protobuf.Timestamp  String, RFC 3339 in UTC
//	google.protobuf.Duration   String, ISO 8601 in seconds (PT-3.5S)
//	…Int64Value and the like   the value that they wrap
//	…Struct, Value, ListValue  the JSON that they stand for
//
// What is absent is Missing where Protobuf can tell (optional, oneof, messages,
// proto2). Where it cannot, in the plain fields of proto3 and in repeated fields
// and maps, absent and default are the same bytes: the value is the default (0,
// "", false, the first enum name, [] or {}). JSON text follows the same rule.
//
// Fields that the schema does not have are passed over. A message index that
// does not exist and messages nested beyond 1,000 levels are decode faults.
//
// A tombstone gives a row with all values Missing. An id that the registry does
// not know is a decode fault; a registry that does not answer is a
// [*schema.UnavailableError].
func (r *Registry) Protobuf(fields *schema.Fields) schema.Decoder[schema.Row] {
	return framed(r.proto, fields, fillProto)
}

// loadProto asks for a schema and for those that it imports, and compiles them.
// Google's own are at hand: they come first, so that the well-known types are
// what this package takes them for.
func (r *Registry) loadProto(ctx context.Context, id uint32) (protoreflect.FileDescriptor, error) {
	s, err := r.byID(ctx, id, sr.TypeProtobuf)
	if err != nil {
		return nil, err
	}
	references, err := r.references(ctx, s)
	if err != nil {
		return nil, err
	}
	path := fmt.Sprintf("schema-id-%d.proto", id)
	texts := map[string]string{path: s.Schema}
	for _, ref := range references {
		texts[ref.name] = ref.text
	}
	compiler := protocompile.Compiler{Resolver: protocompile.CompositeResolver{
		protocompile.WithStandardImports(protocompile.CompositeResolver{}),
		&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(texts)},
	}}
	files, err := compiler.Compile(ctx, path)
	if err != nil {
		return nil, err
	}
	return files[0], nil
}

const (
	// maxDepth is how deep messages may nest; Java's and C++'s limit is 100.
	maxDepth = 1000
	// maxIndex is how deep message types may be declared within each other.
	maxIndex = 100
)

// fillProto is the filler of Protobuf.
func fillProto(file protoreflect.FileDescriptor, body []byte, root *schema.Tree, values []schema.Value) error {
	index, rest, err := new(sr.ConfluentHeader).DecodeIndex(body, maxIndex)
	if err != nil {
		return fmt.Errorf("frame at byte %d: the message index cannot be read: %w", frameSize, err)
	}
	md, err := messageAt(file, index)
	if err != nil {
		return err
	}
	m := dynamicpb.NewMessage(md)
	read := proto.UnmarshalOptions{
		RecursionLimit: maxDepth,
		DiscardUnknown: true,
		Resolver:       (*protoregistry.Types)(nil), // no extensions: those of this process are not the schema's
	}
	if err := read.Unmarshal(rest, m); err != nil {
		return fmt.Errorf("protobuf %s: %w", md.FullName(), err)
	}
	return placeMessage(root, m, values)
}

// messageAt returns the message type that a message index names: its place in
// the file, and then in the type before it.
func messageAt(file protoreflect.FileDescriptor, index []int) (md protoreflect.MessageDescriptor, err error) {
	types := file.Messages()
	for _, i := range index {
		if md = declared(types, i); md == nil {
			return nil, fmt.Errorf("frame at byte %d: the schema has no message of index %v", frameSize, index)
		}
		types = md.Messages()
	}
	return md, nil
}

// declared returns the type in place i, nil where there is none. The types of
// map entries do not count: they are not in the schema's text, where the index
// is taken from.
func declared(types protoreflect.MessageDescriptors, i int) protoreflect.MessageDescriptor {
	for k := range types.Len() {
		md := types.Get(k)
		if md.IsMapEntry() {
			continue
		}
		if i == 0 {
			return md
		}
		i--
	}
	return nil
}
