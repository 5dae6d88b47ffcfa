package schema

import (
	"crypto/sha256"
	"encoding/binary"
	"unicode"
	"unicode/utf8"

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
	//
	// It is UTF-8 without control characters, and differs where ID differs as
	// long as the number of parts is the same: a backslash is doubled, bytes
	// that are no UTF-8 and control characters are written `\x0a`, and in a key
	// of several parts, which are joined by "|", a "|" is written `\|`.
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
	// One buffer for both uses, on the stack for keys of the usual length.
	var stack [192]byte
	buf := stack[:0]
	for _, p := range parts {
		buf = binary.AppendUvarint(buf, uint64(len(p)))
		buf = append(buf, p...)
	}
	sum := sha256.Sum256(buf)
	buf = buf[:0]
	for i, p := range parts {
		if i > 0 {
			buf = append(buf, '|')
		}
		buf = appendReadable(buf, p, len(parts) > 1)
	}
	return Key{ID: [16]byte(sum[:16]), Text: string(buf)}
}

// appendReadable appends p as [Key.Text] writes it. joined tells that p is one
// of several parts.
func appendReadable(dst, p []byte, joined bool) []byte {
	for len(p) > 0 {
		c, size := utf8.DecodeRune(p)
		switch {
		case c == '\\', c == '|' && joined:
			dst = append(dst, '\\', byte(c))
		case c == utf8.RuneError && size == 1, unicode.IsControl(c):
			dst = appendHex(dst, p[:size])
		default:
			dst = append(dst, p[:size]...)
		}
		p = p[size:]
	}
	return dst
}

// appendHex appends each byte of p as `\x00`.
func appendHex(dst, p []byte) []byte {
	const digits = "0123456789abcdef"
	for _, b := range p {
		dst = append(dst, '\\', 'x', digits[b>>4], digits[b&15])
	}
	return dst
}
