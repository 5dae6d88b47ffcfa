package schema

import (
	"encoding/binary"

	"github.com/google/uuid"
)

// ByField returns the KeyFunc of the one field at path, see [FieldPart].
func ByField(path string) KeyFunc[Row] { return Join(FieldPart(path)) }

// ByHeader returns the KeyFunc of the one header, see [HeaderPart].
func ByHeader[T any](name string) KeyFunc[T] { return Join(HeaderPart[T](name)) }

// ByRecordKey returns the KeyFunc of the record key. It needs producers that give
// each event a record key of its own; a record key that names an entity, as
// on a compacted topic, would make all but the first of its events duplicates.
func ByRecordKey[T any]() KeyFunc[T] { return Join(RecordKeyPart[T]()) }

// ByValue returns the KeyFunc of the text that f derives from the message. An
// empty text is a fault with [ReasonKeyMissing].
func ByValue[T any](f func(m Message[T]) string) KeyFunc[T] { return Join(ValuePart(f)) }

// Join returns the KeyFunc of several parts in the given order. Each part is
// prefixed by its length, so that ("a|b", "c") and ("a", "b|c") are two keys. A
// part that is missing, null or empty is a fault with [ReasonKeyMissing]. The
// key of one part is that of the By function of the same name. Join panics
// where there is no part at all.
func Join[T any](parts ...KeyPart[T]) KeyFunc[T] {
	switch len(parts) {
	case 0:
		panic("schema: Join needs at least one part: without one all messages would share a key")
	case 1:
		return one(parts[0])
	}
	return func(m Message[T]) (Key, error) {
		var stack [4][]byte // most keys have no more parts
		raw := stack[:0]
		for _, p := range parts {
			v, err := p.value(m)
			if err != nil {
				return Key{}, err
			}
			raw = append(raw, v.Raw)
		}
		return NewKey(raw...), nil
	}
}

// one returns the KeyFunc of a single part, which needs no list of parts.
func one[T any](p KeyPart[T]) KeyFunc[T] {
	return func(m Message[T]) (Key, error) {
		v, err := p.value(m)
		if err != nil {
			return Key{}, err
		}
		return NewKey(v.Raw), nil
	}
}

// AsUUID returns the KeyFunc of a part that is declared a UUID: the key's ID is
// the UUID itself and its Text is empty. The part must be the canonical text, in
// upper or lower case; the record key and a header may also be the 16 bytes.
// Anything else is a fault with [ReasonKeyInvalid], and so are the nil and the
// max UUID, which stand for "no id" and would be shared.
//
// There is no way to declare several parts or the position a UUID, for neither
// is one.
func AsUUID[T any](p KeyPart[T]) KeyFunc[T] {
	return func(m Message[T]) (Key, error) {
		id, err := p.uuid(m)
		if err != nil {
			return Key{}, err
		}
		return Key{ID: id}, nil
	}
}

// ByPosition returns the KeyFunc of the record's place: cluster id, topic, topic
// id, partition and offset. It tells a redelivery of the same record, but not a
// repeat by the producer, which has an offset of its own.
func ByPosition[T any]() KeyFunc[T] {
	return func(m Message[T]) (Key, error) { return positionKey(m.Record), nil }
}

// positionKey joins all that tells one place from another. A topic that was
// deleted and created again counts its offsets from 0 again, and so does the
// same topic of another cluster.
func positionKey(r *Record) Key {
	var place [12]byte
	binary.BigEndian.PutUint32(place[:4], uint32(r.Partition))
	binary.BigEndian.PutUint64(place[4:], uint64(r.Offset))
	k := NewKey([]byte(r.ClusterID), []byte(r.Topic), r.TopicID[:], place[:])
	k.Text = r.ClusterID + "/" + uuid.UUID(r.TopicID).String() + "/" + r.Position()
	return k
}
