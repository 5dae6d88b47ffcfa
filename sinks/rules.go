package sinks

import (
	"fmt"
	"strings"
)

// Rule says what values columns of some types take.
type Rule struct {
	// Types are the types, Takes the values in words.
	Types, Takes string
}

// Rules is the table of rules by which a value becomes a column's. Everywhere,
// null is null, a missing field keeps the column's default, bytes such as the
// record key are read as text unless the column is bytea, and text is read as
// the column's type. What does not fit is its message's own fault: nothing is
// rounded, cut or guessed.
func Rules() []Rule {
	return []Rule{
		{"boolean", "true, false; text t, yes, on, 1 … as PostgreSQL, but no prefixes"},
		{"smallint, integer, bigint", "whole numbers in range, also 5.0 and 1e3"},
		{"numeric", "numbers of any length that precision and scale hold, a negative scale too; no NaN"},
		{"real, double precision", "numbers in range, to the nearest float; text also NaN, Infinity and -Infinity"},
		{"text, varchar, char", "text that is not too long and has no U+0000; numbers, truth values and JSON by their text"},
		{"uuid", "text, or 16 bytes"},
		{"bytea", `bytes; text as \x and hexadecimal digits, or PostgreSQL's escapes; base64 and hex by declaration`},
		{"date", "2006-01-02; infinity, -infinity"},
		{"time, timetz", "15:04:05.999999, without an offset and with one"},
		{"timestamptz", "RFC 3339 with an offset, to the microsecond (a seventh digit is refused); infinity, -infinity; epochs by declaration"},
		{"timestamp", "the same without an offset, or with Z"},
		{"interval", "what PostgreSQL parses, ISO 8601 too, to the microsecond"},
		{"json, jsonb", "every value; text becomes a JSON string"},
		{"arrays", "JSON arrays, inner ones as dimensions, each element by the rule of its type; text in PostgreSQL's format where it would not be changed"},
		{"domains", "as their base type; PostgreSQL checks the domain"},
		{"enums, inet, cidr, ranges, money, all others", "text that PostgreSQL parses; no digit that it would round"},
		{"generated columns, identity always", "not written"},
	}
}

// RulesMarkdown writes [Rules] and [Conversions] as two Markdown tables, for a
// page that is generated.
func RulesMarkdown() string {
	var b strings.Builder
	b.WriteString("| column | takes |\n| --- | --- |\n")
	for _, r := range Rules() {
		fmt.Fprintf(&b, "| %s | %s |\n", r.Types, r.Takes)
	}
	b.WriteString("\n| conversion | takes | gives |\n| --- | --- | --- |\n")
	for _, c := range Conversions() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, c.Takes, c.Gives)
	}
	return b.String()
}
