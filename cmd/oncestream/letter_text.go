package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oncestream/oncestream/offsets"
)

// writeLetter prints all that is known of a dead letter.
func writeLetter(out io.Writer, d *offsets.StoredDeadLetter, now time.Time, reveal bool) {
	fmt.Fprintf(out, "dead letter %d: %s\n", d.ID, d.Record.Position())
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(out, "  %-12s %s\n", name, text)
		}
	}
	line("state", stateText(d)+resolutionText(d))
	line("reason", string(d.Reason))
	line("detail", detailText(d.Detail, reveal))
	line("sqlstate", d.SQLState)
	line("column", d.Column)
	line("constraint", d.Constraint)
	line("set aside", fmt.Sprintf("%s (%s ago)", timeText(d.CreatedAt), ageText(now.Sub(d.CreatedAt))))
	line("record time", timeText(d.Record.Time))
	if d.Record.Key != nil {
		line("record key", printable(d.Record.Key))
	}
	for _, h := range d.Record.Headers {
		text := "null"
		if h.Value != nil {
			text = printable(h.Value)
		}
		line("header", h.Key+" = "+text)
	}
	line("value", valueText(d, reveal))
	if d.Fixed {
		line("fixed value", payloadText(d.FixedValue, reveal))
	}
}

func resolutionText(d *offsets.StoredDeadLetter) string {
	if d.State == offsets.StateDead {
		return ""
	}
	return fmt.Sprintf(" at %s: %s", timeText(d.ResolvedAt), d.Resolution)
}

func valueText(d *offsets.StoredDeadLetter, reveal bool) string {
	switch {
	case d.ValueSize < 0:
		return "none: a tombstone"
	case d.ByPosition:
		return fmt.Sprintf("%d bytes, kept by its position in the topic: it was too large to keep here", d.ValueSize)
	}
	return payloadText(d.Record.Value, reveal)
}

func payloadText(value []byte, reveal bool) string {
	if reveal {
		return printable(value)
	}
	return fmt.Sprintf("%d bytes, redacted: --reveal shows it", len(value))
}

// detailText leaves out what a detail quotes of the payload, unless payloads
// are to be shown. What is quoted besides, such as a constraint's name, is not
// told from it. PostgreSQL quotes a value as it is, so that what could do
// something to a terminal is written as an escape.
func detailText(detail string, reveal bool) string {
	if !reveal {
		detail = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`).ReplaceAllString(detail, `"…"`)
	}
	var b strings.Builder
	for _, c := range detail {
		if unicode.IsPrint(c) || c == '\n' || c == '\t' {
			b.WriteRune(c)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(c), "'"))
		}
	}
	return b.String()
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// printable writes text as it is, and quotes what could do something to a
// terminal.
func printable(b []byte) string {
	if !utf8.Valid(b) {
		return strconv.Quote(string(b))
	}
	for _, c := range string(b) {
		if !unicode.IsPrint(c) {
			return strconv.Quote(string(b))
		}
	}
	return string(b)
}
