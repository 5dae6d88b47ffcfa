package offsets

import "github.com/jackc/pgx/v5/pgtype"

// column shows pgx one field of the entries at the given places as an array. An
// element is a pointer into the entries: to hand pgx a value of its own for
// each element would allocate three times an entry.
type column struct {
	entries []Entry
	places  []int
	cell    func(*Entry) any
}

// Dimensions says that the array has one, and is empty rather than null.
func (c column) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(c.places)), LowerBound: 1}} //nolint:gosec // a batch is far smaller
}

// Index returns element i.
func (c column) Index(i int) any { return c.cell(&c.entries[c.places[i]]) }

// IndexType returns an example of what Index returns.
func (c column) IndexType() any { return c.cell(&Entry{}) }

type (
	entryKey    Entry
	entryOffset Entry
	entrySum    Entry
)

func keyCell(e *Entry) any    { return (*entryKey)(e) }
func offsetCell(e *Entry) any { return (*entryOffset)(e) }
func sumCell(e *Entry) any    { return (*entrySum)(e) }

// UUIDValue is the entry's key.
func (e *entryKey) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: e.Key, Valid: true}, nil
}

// Int64Value is the entry's offset.
func (e *entryOffset) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: e.Offset, Valid: true}, nil
}

// Int64Value is the entry's payload sum.
func (e *entrySum) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: e.PayloadSum, Valid: true}, nil
}
