package main

import (
	"fmt"
	"strings"
)

// reference writes the reference of the pipeline file as Markdown, out of the
// same descriptions that the file is read by.
func reference() string {
	var b strings.Builder
	c := &config{}
	writeFields(&b, "", fileFields(c))
	b.WriteString("\nA **column** takes its value from a field, written as its path such as `a.b`; from the record, by `$key`, `$topic`, `$partition`, `$offset`, `$time` " +
		"or `$header.NAME`; from a whole number, which is itself; or from an object with one of `field`, `value` and `expr`:\n\n")
	writeFields(&b, "", sourceFields(&column{}))
	b.WriteString("\nThe kinds of sinks, each an item of `sinks`:\n\n")
	for _, k := range sinkKinds() {
		fmt.Fprintf(&b, "**%s**: %s\n\n", k.name, k.doc)
		writeFields(&b, k.name+".", k.fields(&sinkConfig{}))
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String()) + "\n"
}

func writeFields(b *strings.Builder, prefix string, fields []field) {
	b.WriteString("| field | type | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range fields {
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", prefix, f.path, f.kind(), f.defaultText(), f.meaning())
	}
}

func (f field) defaultText() string {
	switch {
	case f.required:
		return "**required**"
	case f.def != "":
		return "`" + f.def + "`"
	case f.noDefault != "":
		return f.noDefault
	}
	return "none"
}

// meaning is the description with what the type does not say: the choices, and
// what overrides the field.
func (f field) meaning() string {
	text := f.doc
	if len(f.choices) > 1 {
		quoted := make([]string, len(f.choices))
		for i, c := range f.choices {
			quoted[i] = "`" + c + "`"
		}
		text += " One of " + strings.Join(quoted, ", ") + "."
	}
	var over []string
	if f.flag != "" {
		over = append(over, "`--"+f.flag+"`")
	}
	if f.env != "" {
		over = append(over, "`"+f.env+"`")
	}
	if len(over) > 0 {
		text += " Overridden by " + strings.Join(over, ", then ") + "."
	}
	return text
}
