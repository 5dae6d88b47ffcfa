package sinks

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/oncestream/oncestream/schema"
)

func stripNUL(v schema.Value) (schema.Value, error) {
	if v.Kind != schema.String && v.Kind != schema.Bytes || bytes.IndexByte(v.Raw, 0) < 0 {
		return v, nil
	}
	return schema.Value{Kind: v.Kind, Raw: bytes.ReplaceAll(v.Raw, []byte{0}, nil)}, nil
}

// decodeBase64 takes both alphabets of RFC 4648, but not in one text.
func decodeBase64(v schema.Value) (schema.Value, error) {
	if v.Kind != schema.String && v.Kind != schema.Bytes {
		return v, unreadable(v, "base64", "text is needed")
	}
	encoding := base64.RawStdEncoding
	if bytes.ContainsAny(v.Raw, "-_") {
		encoding = base64.RawURLEncoding
	}
	text := v.Raw
	if len(text)%4 == 0 {
		text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("=")), []byte("="))
	}
	out, err := encoding.Strict().AppendDecode(nil, text)
	if err != nil || bytes.ContainsAny(text, "\r\n") {
		return v, unreadable(v, "base64", "it is no base64")
	}
	return bytesOf(out), nil
}

func decodeHex(v schema.Value) (schema.Value, error) {
	if v.Kind != schema.String && v.Kind != schema.Bytes {
		return v, unreadable(v, "hex", "text is needed")
	}
	out, err := hex.AppendDecode(nil, v.Raw)
	if err != nil {
		return v, unreadable(v, "hex", "pairs of hexadecimal digits are needed")
	}
	return bytesOf(out), nil
}

// bytesOf is not null where there are no bytes.
func bytesOf(b []byte) schema.Value {
	if b == nil {
		b = []byte{}
	}
	return schema.Value{Kind: schema.Bytes, Raw: b}
}

// scaledDecimal reads a decimal that comes with its scale, as Kafka Connect's
// change data capture writes a numeric without one.
func scaledDecimal(v schema.Value) (schema.Value, error) {
	if v.Kind != schema.Object {
		if _, err := numberAs(v, "decimal"); err != nil {
			return v, err
		}
		return v, nil
	}
	var parts struct {
		Scale *int    `json:"scale"`
		Value *string `json:"value"`
	}
	if err := json.Unmarshal(v.Raw, &parts, json.RejectUnknownMembers(true)); err != nil || parts.Scale == nil || parts.Value == nil {
		return v, unreadable(v, "decimal", `an object {"scale": 2, "value": "AQ=="} is needed`)
	}
	unscaled, err := decodeBase64(textValue([]byte(*parts.Value)))
	if err != nil {
		return v, err
	}
	return unscaledDecimal(v, unscaled.Raw, *parts.Scale)
}

// fixedDecimal reads the bytes of decimals that all have the scale given.
func fixedDecimal(text string) (func(schema.Value) (schema.Value, error), error) {
	scale, err := strconv.Atoi(text)
	if err != nil || scale < -maxDigitsAfter || scale > maxDigitsAfter {
		return nil, fmt.Errorf("conversion \"decimal:%s\": the scale is a whole number, as in decimal:2", text)
	}
	return func(v schema.Value) (schema.Value, error) {
		if v.Kind == schema.Bytes {
			return unscaledDecimal(v, v.Raw, scale)
		}
		raw, err := decodeBase64(v)
		if err != nil {
			return v, err
		}
		return unscaledDecimal(v, raw.Raw, scale)
	}, nil
}

// unscaledDecimal is the big-endian two's complement integer × 10^-scale, with
// its scale. No bytes are no number.
func unscaledDecimal(v schema.Value, b []byte, scale int) (schema.Value, error) {
	const most = 65_536 // bytes, more than numeric has digits for
	switch {
	case len(b) == 0:
		return v, unreadable(v, "decimal", "there are no bytes, which are no number")
	case len(b) > most || scale < -maxDigitsBefore || scale > maxDigitsAfter:
		return v, outside(v, "decimal", "it is outside of what numeric holds")
	}
	n := new(big.Int).SetBytes(b)
	if b[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return schema.Value{Kind: schema.Number, Raw: placed(n, scale)}, nil
}

// placed writes n × 10^-scale.
func placed(n *big.Int, scale int) []byte {
	digits := new(big.Int).Abs(n).String()
	if scale < 0 {
		digits += strings.Repeat("0", -scale)
	} else if scale > 0 {
		if pad := scale + 1 - len(digits); pad > 0 {
			digits = strings.Repeat("0", pad) + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if n.Sign() < 0 {
		digits = "-" + digits
	}
	return []byte(digits)
}
