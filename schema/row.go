package schema

// Kind tells what a [Value] is. The zero Kind is Missing, so that the zero
// Value of a field that did not occur says so.
type Kind uint8

// The kinds of values.
const (
	Missing Kind = iota // the field did not occur
	Null                // the field was null
	Bool                // Raw is "true" or "false"
	Number              // Raw is the literal, with every digit that was sent
	String              // Raw is the text, unescaped UTF-8
	Bytes               // Raw is the bytes themselves (never from JSON)
	Object              // Raw is JSON text
	Array               // Raw is JSON text
)

// Value is one value of a row, kept as its text so that no digit is lost on
// the way. Raw may share memory with the record.
type Value struct {
	Kind Kind
	Raw  []byte
}

// Present reports whether the value is neither missing nor null.
func (v Value) Present() bool { return v.Kind > Null }

// Fields is the set of fields that a pipeline maps, by path. It is built once
// and shared by all rows.
type Fields struct {
	paths []string
	index map[string]int
}

// NewFields returns the set of the given paths; a path that is repeated counts
// once. A path is the names from the outside in, joined by dots ("a.b.c"); see
// [Rows] for how a name that contains a dot is written.
func NewFields(paths ...string) *Fields {
	f := &Fields{index: make(map[string]int, len(paths))}
	for _, p := range paths {
		if _, ok := f.index[p]; !ok {
			f.index[p] = len(f.paths)
			f.paths = append(f.paths, p)
		}
	}
	return f
}

// Len returns how many fields there are.
func (f *Fields) Len() int { return len(f.paths) }

// Paths returns the paths in the order in which they were given. The caller
// must not change it.
func (f *Fields) Paths() []string { return f.paths }

// Index returns the place of the field in a row's Values, or -1.
func (f *Fields) Index(path string) int {
	if i, ok := f.index[path]; ok {
		return i
	}
	return -1
}

// Row is a body of the mapped fields only: Values[i] is the field
// Fields.Paths()[i]. A row of a tombstone has all its values Missing.
type Row struct {
	Fields *Fields
	Values []Value
}

// Get returns the field's value, Missing where it is not mapped.
func (r Row) Get(path string) Value {
	if i := r.Fields.Index(path); i >= 0 {
		return r.Values[i]
	}
	return Value{}
}
