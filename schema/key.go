package schema

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// Key is an idempotency key: 16 bytes that stand for one business event. It is
// the UUID itself where the pipeline's key is declared a UUID (time-ordered
// UUIDs then keep the index of keys local), else the first 128 bits of SHA-256
// over the length-prefixed parts of the key.
type Key struct {
	// ID is what the ledger stores and compares.
	ID [16]byte
	// Text is the key as a person would write it, for logs, calls and
	// dead letters. Empty means: the canonical form of the UUID in ID.
	Text string
}

// String returns Text, or the canonical form of the UUID.
func (k Key) String() string {
	if k.Text != "" {
		return k.Text
	}
	return uuid.UUID(k.ID).String()
}

// NewKey returns the key of the given parts. Each part is prefixed by its
// length before hashing, so that ("a|b", "c") and ("a", "b|c") differ. It is
// the caller's duty to refuse empty parts.
func NewKey(parts ...[]byte) Key {
	var buf []byte
	size := 0
	for _, p := range parts {
		size += len(p) + 1
	}
	buf = make([]byte, 0, size+8*len(parts))
	text := make([]byte, 0, size)
	for i, p := range parts {
		buf = binary.AppendUvarint(buf, uint64(len(p)))
		buf = append(buf, p...)
		if i > 0 {
			text = append(text, '|')
		}
		text = append(text, p...)
	}
	sum := sha256.Sum256(buf)
	k := Key{Text: string(text)}
	copy(k.ID[:], sum[:])
	return k
}
