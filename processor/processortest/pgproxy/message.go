package pgproxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
)

// Message is one message of the protocol on its way.
type Message struct {
	// Session counts the connections from 1; PID is the server's process of the
	// connection, 0 until it is known.
	Session int
	PID     uint32
	// ToServer tells the direction.
	ToServer bool
	// Kind is the message's type byte: 'Q' a simple query, 'P' parse, 'B' bind,
	// 'E' execute; from the server 'C' a command's end, 'Z' ready.
	Kind byte
	// SQL is the statement of a 'Q', 'P', 'B', 'D' or 'E', empty otherwise.
	SQL string
	// Tag is what the server says of a command that has ended: "INSERT 0 5".
	Tag string
	// Status is 'I', 'T' or 'E' of a 'Z': idle, in a transaction, in a failed one.
	Status byte
}

// Commits reports whether the message has the server commit.
func (m Message) Commits() bool {
	return m.ToServer && (m.Kind == 'Q' || m.Kind == 'E') && strings.EqualFold(strings.Trim(m.SQL, " \t\r\n;"), "commit")
}

// Committed reports whether the server says that it has committed.
func (m Message) Committed() bool { return !m.ToServer && m.Kind == 'C' && m.Tag == "COMMIT" }

// maxMessage bounds the memory of a message: PostgreSQL's own limit.
const maxMessage = 1 << 30

// readMessage reads a message with its type and length.
func readMessage(r io.Reader) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	return readBody(r, head, 1)
}

// readStartup reads a message without a type: the first ones of a client.
func readStartup(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	return readBody(r, head, 0)
}

// readBody reads what follows a head; the length begins at the given byte and
// counts itself.
func readBody(r io.Reader, head []byte, length int) ([]byte, error) {
	rest := int(binary.BigEndian.Uint32(head[length:])) - 4
	if rest < 0 || rest > maxMessage {
		return nil, errNoProtocol
	}
	all := make([]byte, len(head)+rest)
	copy(all, head)
	_, err := io.ReadFull(r, all[len(head):])
	return all, err
}

// statements follows which text a message is about. It is used by the client's
// direction alone.
type statements struct {
	prepared, portals map[string]string
}

func newStatements() *statements {
	return &statements{prepared: map[string]string{}, portals: map[string]string{}}
}

// sql returns the statement that a client's message is about.
func (s *statements) sql(kind byte, body []byte) string {
	first, rest := cutText(body)
	switch kind {
	case 'Q':
		return first
	case 'P': // name, text, …
		text, _ := cutText(rest)
		s.prepared[first] = text
		return text
	case 'B': // portal, name, …
		name, _ := cutText(rest)
		s.portals[first] = s.prepared[name]
		return s.portals[first]
	case 'E': // portal, …
		return s.portals[first]
	case 'D', 'C': // 'S' or 'P' before the name
		if len(first) > 0 && first[0] == 'S' {
			return s.prepared[first[1:]]
		}
		if len(first) > 0 {
			return s.portals[first[1:]]
		}
	}
	return ""
}

// cutText cuts off a text that ends with a zero byte.
func cutText(b []byte) (text string, rest []byte) {
	before, after, _ := bytes.Cut(b, []byte{0})
	return string(before), after
}

// withSQL returns a 'Q' or 'P' with another statement.
func withSQL(raw []byte, sql string) []byte {
	body := raw[5:]
	out := []byte{raw[0], 0, 0, 0, 0}
	if raw[0] == 'P' {
		name, rest := cutText(body)
		out = append(append(out, name...), 0)
		body = rest
	}
	_, rest := cutText(body)
	out = append(append(append(out, sql...), 0), rest...)
	return sized(out)
}

// withTag returns a 'C' of the server with another tag.
func withTag(tag string) []byte {
	return sized(append(append([]byte{'C', 0, 0, 0, 0}, tag...), 0))
}

// ErrorMessage is an error of the server, to be put in the place of its answer.
func ErrorMessage(sqlstate, text string) []byte {
	out := []byte{'E', 0, 0, 0, 0}
	for _, field := range []string{"SERROR", "VERROR", "C" + sqlstate, "M" + text} {
		out = append(append(out, field...), 0)
	}
	return sized(append(out, 0))
}

func sized(message []byte) []byte {
	binary.BigEndian.PutUint32(message[1:], uint32(len(message)-1))
	return message
}
