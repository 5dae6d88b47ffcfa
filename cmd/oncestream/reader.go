package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/oncestream/oncestream/schema"
)

// reader fills fields from a YAML document and from what overrides it, and
// gathers what is wrong.
type reader struct {
	file   string
	env    lookup
	over   map[string]bool // by path: set by a flag or by the environment
	lines  map[string]int  // by path: where a field is in the file
	faults faults
}

func newReader(file string, env lookup) *reader {
	return &reader{file: file, env: env, over: map[string]bool{}, lines: map[string]int{}}
}

// fail notes a fault at a line of the file.
func (r *reader) fail(line int, path, format string, args ...any) {
	r.faults = append(r.faults, fault{
		source: fmt.Sprintf("%s:%d", r.file, line), line: line, path: path, text: fmt.Sprintf(format, args...),
	})
}

// failAt notes a fault of a field, at its line or that of the nearest field
// around it.
func (r *reader) failAt(path, format string, args ...any) {
	r.fail(lineOf(r.lines, path), path, format, args...)
}

// lineOf returns the line of the field, or of the nearest one around it; the
// file as a whole is line 1.
func lineOf(lines map[string]int, path string) int {
	for path != "" {
		if line, ok := lines[path]; ok {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 1
}

// override takes the flags, then the environment, before the file is read, so
// that ${VAR} in a field that is overridden need not be set.
func (r *reader) override(fields []field, flags map[string]string) {
	for _, f := range fields {
		source, text := "--"+f.flag, flags[f.flag]
		if text == "" && f.env != "" {
			source = f.env
			text, _ = r.env(f.env)
		}
		if text == "" {
			continue
		}
		r.over[f.path] = true
		if rule := f.set(text); rule != "" {
			r.faults = append(r.faults, fault{source: source, path: f.path, text: rule + f.got(text)})
		}
	}
}

// mapping reads the fields of a mapping. at is where it is in the file, within
// is where it is in the description.
func (r *reader) mapping(at, within string, node ast.Node, fields []field) {
	pairs, ok := pairsOf(node)
	if !ok {
		r.failAt(at, "must be a mapping (got %s)", nodeName(node))
		return
	}
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		r.member(join(at, name), join(within, name), name, pair, fields)
	}
}

func (r *reader) member(at, within, name string, pair *ast.MappingValueNode, fields []field) {
	line := pair.Key.GetToken().Position.Line
	if i := slices.IndexFunc(fields, func(f field) bool { return f.path == within }); i >= 0 {
		r.lines[at] = line
		r.value(at, pair.Value, fields[i])
		return
	}
	if slices.ContainsFunc(fields, func(f field) bool { return strings.HasPrefix(f.path, within+".") }) {
		r.lines[at] = line
		r.mapping(at, within, pair.Value, fields)
		return
	}
	r.fail(line, at, "unknown field%s", didYouMean(name, namesIn(fields, strings.TrimSuffix(within, name))))
}

// namesIn lists the names that may stand in the mapping with the given prefix.
func namesIn(fields []field, prefix string) []string {
	var names []string
	for _, f := range fields {
		if rest, ok := strings.CutPrefix(f.path, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// value reads the value of a field.
func (r *reader) value(at string, node ast.Node, f field) {
	switch to := f.value.(type) {
	case *[]sinkConfig:
		r.sinks(at, node, to)
	case *columns:
		r.columns(at, node, to)
	case *[]string:
		r.list(at, node, f, to)
	case *fingerprint:
		r.fingerprint(at, node, f, to)
	case *column:
		*to, _ = r.column(at, f.path, node)
	case *conversions:
		r.conversions(at, node, to)
	case **schema.Value:
		r.constant(at, node, to)
	default:
		r.scalar(at, node, f)
	}
}

func (r *reader) scalar(at string, node ast.Node, f field) {
	if r.over[f.path] {
		return
	}
	text, quoted, ok := scalarText(node)
	if !ok {
		r.failAt(at, "must be %s (got %s)", f.kind(), nodeName(node))
		return
	}
	if _, isText := f.value.(*string); isText && !quoted {
		r.failAt(at, "must be a text: put it in quotes%s", f.got(text))
		return
	}
	text, ok = r.expand(at, text)
	if !ok {
		return
	}
	if rule := f.set(text); rule != "" {
		r.failAt(at, "%s%s", rule, f.got(text))
	}
}

func (r *reader) list(at string, node ast.Node, f field, to *[]string) {
	if r.over[f.path] {
		return
	}
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		r.failAt(at, "must be a list, as in [a, b] (got %s)", nodeName(node))
		return
	}
	for i, item := range seq.Values {
		text, ok := r.text(fmt.Sprintf("%s[%d]", at, i), item)
		if ok {
			*to = append(*to, text)
		}
	}
}

// text reads a text that must not be empty.
func (r *reader) text(at string, node ast.Node) (string, bool) {
	text, quoted, ok := scalarText(node)
	r.lines[at] = node.GetToken().Position.Line
	if !ok || !quoted {
		r.failAt(at, "must be a text (got %s)", nodeName(node))
		return "", false
	}
	text, ok = r.expand(at, text)
	if ok && text == "" {
		r.failAt(at, "must not be empty")
	}
	return text, ok && text != ""
}

// finish sets the defaults of the fields that were left out, and refuses those
// that may not be.
func (r *reader) finish(at string, fields []field) {
	for _, f := range fields {
		path := join(at, f.path)
		if _, given := r.lines[path]; given || r.over[f.path] && at == "" {
			if f.required && f.empty() && !r.isFault(path) {
				r.failAt(path, "is required and empty")
			}
			continue
		}
		switch {
		case f.required:
			r.failAt(path, "is required%s", f.hint())
		case f.def != "":
			f.set(f.def)
		}
	}
}

// isFault reports whether the field or something in it is a fault already.
func (r *reader) isFault(path string) bool {
	return slices.ContainsFunc(r.faults, func(f fault) bool { return strings.HasPrefix(f.path, path) })
}

// pairsOf returns the pairs of a mapping; the parser has refused those with one
// name twice.
func pairsOf(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// scalarText returns the text of a scalar; quoted is false where YAML takes it
// for something else than a text.
func scalarText(node ast.Node) (text string, quoted, ok bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true, true
	case *ast.LiteralNode:
		return n.Value.Value, true, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, false, true
	}
	return unsplit(node)
}

// unsplit puts a text with a colon together again. In a list within braces, as
// in {brokers: [127.0.0.1:9092]}, the parser takes it for a mapping; by the YAML
// specification (section 7.3.3) a colon that is followed by a letter is none.
func unsplit(node ast.Node) (text string, quoted, ok bool) {
	pairs, ok := pairsOf(node)
	if !ok || len(pairs) != 1 {
		return "", false, false
	}
	colon, value := pairs[0].Start.Position, pairs[0].Value
	rest, _, ok := scalarText(value)
	if after := value.GetToken().Position; !ok || after.Line != colon.Line || after.Column != colon.Column+1 {
		return "", false, false
	}
	return pairs[0].Key.GetToken().Value + ":" + rest, true, true
}

// nodeName names what a node is, for messages.
func nodeName(node ast.Node) string {
	if text, _, ok := scalarText(node); ok {
		return strconv.Quote(text)
	}
	switch node.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor, which is not supported"
	}
	return "a " + strings.ToLower(node.Type().String())
}

// join puts a name behind the path of what it is in.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
