package sinks

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncestream/oncestream/schema"
)

// shown is a value as an error shows it: quoted, and cut where it is long.
func shown(v schema.Value) string {
	const most = 40
	raw := v.Raw
	if len(raw) <= most {
		return fmt.Sprintf("%q", raw)
	}
	return fmt.Sprintf("%q… (%d bytes)", raw[:most], len(raw))
}

var errNUL = errors.New("text cannot hold the character U+0000 (SQLSTATE 22021)")

// checkText refuses what no text type of PostgreSQL holds (SQLSTATE 22021).
func checkText(c *TableColumn, v schema.Value) error {
	if i := bytes.IndexByte(v.Raw, 0); i >= 0 {
		return misfit(c, v, fmt.Sprintf("%v, at byte %d", errNUL, i))
	}
	if !utf8.Valid(v.Raw) {
		return alien(c, v, "the bytes are no UTF-8 (SQLSTATE 22021)")
	}
	return nil
}

// encodeText takes numbers and truth values by their literal, objects and
// arrays by their JSON text. A text that is longer than the column in
// characters is refused, also where only blanks would be cut; the blanks at the
// end of a char column do not count, for they mean nothing there.
func encodeText(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	if err := checkText(c, v); err != nil {
		return dst, err
	}
	limit, ok := c.length()
	if ok && len(v.Raw) > limit {
		text := v.Raw
		if c.BaseOID == pgtype.BPCharOID {
			text = bytes.TrimRight(text, " ")
		}
		if n := utf8.RuneCount(text); n > limit {
			return dst, misfit(c, v, fmt.Sprintf("it has %d characters", n))
		}
	}
	return append(dst, v.Raw...), nil
}

// encodeBool takes what PostgreSQL takes, but no prefixes: true, t, yes, y, on,
// 1 and their opposites, whatever their case. The number 1 is no truth value.
func encodeBool(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	text := v.Raw
	if v.Kind == schema.String {
		text = bytes.ToLower(text)
	} else if v.Kind != schema.Bool {
		text = nil
	}
	switch string(text) {
	case "true", "t", "yes", "y", "on", "1":
		return append(dst, 1), nil
	case "false", "f", "no", "n", "off", "0":
		return append(dst, 0), nil
	}
	return dst, alien(c, v, "true or false is needed")
}

// encodeUUID takes text with or without hyphens and braces.
func encodeUUID(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	if v.Kind == schema.String && len(v.Raw) == 16 {
		return append(dst, v.Raw...), nil // bytes, for no text of a UUID is so short
	}
	if v.Kind == schema.String {
		if id, err := uuid.ParseBytes(v.Raw); err == nil {
			return append(dst, id[:]...), nil
		}
	}
	return dst, alien(c, v, "the text of a UUID is needed")
}

// encodeBytea takes bytes as they are, and text by PostgreSQL's own rule for
// bytea: `\x` and hexadecimal digits, or the escape format, in which a
// backslash is written `\\` and a byte `\ooo`. Base64 is not guessed at, for it
// is a valid escape format too.
func encodeBytea(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	switch {
	case v.Kind == schema.Bytes:
		return append(dst, v.Raw...), nil
	case v.Kind != schema.String:
		return dst, alien(c, v, "text or bytes are needed")
	case bytes.HasPrefix(v.Raw, []byte(`\x`)):
		out, err := hex.AppendDecode(dst, bytes.Join(bytes.Fields(v.Raw[2:]), nil))
		if err != nil {
			return dst, alien(c, v, "after \\x there must be pairs of hexadecimal digits")
		}
		return out, nil
	}
	return encodeEscaped(dst, c, v)
}

func encodeEscaped(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	for s := v.Raw; len(s) > 0; {
		switch {
		case s[0] != '\\':
			dst, s = append(dst, s[0]), s[1:]
		case len(s) > 1 && s[1] == '\\':
			dst, s = append(dst, '\\'), s[2:]
		case len(s) > 3 && s[1] >= '0' && s[1] <= '3' && isOctal(s[2]) && isOctal(s[3]):
			dst, s = append(dst, (s[1]-'0')<<6|(s[2]-'0')<<3|(s[3]-'0')), s[4:]
		default:
			return dst, alien(c, v, `a backslash is neither \\ nor \ooo`)
		}
	}
	return dst, nil
}

func isOctal(b byte) bool { return b >= '0' && b <= '7' }

// encodeJSON keeps JSON text as it was sent; a String becomes a JSON string.
func encodeJSON(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	if v.Kind != schema.String {
		return append(dst, v.Raw...), nil
	}
	out, err := jsontext.AppendQuote(dst, v.Raw)
	if err != nil {
		return dst, alien(c, v, "the bytes are no UTF-8 (SQLSTATE 22021)")
	}
	return out, nil
}

// encodeJSONB is JSON text after the version of the format, which is 1.
func encodeJSONB(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	return encodeJSON(append(dst, 1), c, v)
}
