package schema

import "strings"

// SplitPath returns the names that a field's path is made of, from the outside
// in. Names are joined by dots; a dot that belongs to a name is written `\.`,
// and a backslash before a dot or a backslash `\\`. Any other backslash stands
// for itself. Every text is a path: "" is the one name "", and "a." the name ""
// within "a", for JSON allows empty names.
func SplitPath(path string) []string {
	var names []string
	var name strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '.':
			names = append(names, name.String())
			name.Reset()
		case c == '\\' && i+1 < len(path) && (path[i+1] == '.' || path[i+1] == '\\'):
			i++
			name.WriteByte(path[i])
		default:
			name.WriteByte(c)
		}
	}
	return append(names, name.String())
}

// JoinPath returns the path of the given names, with dots and backslashes of
// the names escaped: the reverse of [SplitPath]. It needs at least one name.
func JoinPath(names ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `.`, `\.`)
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = escape.Replace(n)
	}
	return strings.Join(quoted, ".")
}
