package sinks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// Delete deletes the rows of each message's key: every message is the end of
// something, be it a tombstone or an event with a body. Running again on the
// same batch changes nothing, and no row of the key is no error.
//
// A key that is missing or null is a [schema.ReasonNotNull] fault. The key of a
// tombstone comes from pseudo-fields such as $key, or, if the key is one column,
// from the record key as text.
//
// The statement is one for a batch. Its keys are sorted, and are compared as
// PostgreSQL does; rows are locked as PostgreSQL finds them.
//
// Use it as a pointer, and call Prepare first.
type Delete[T any] struct {
	// Table is the table's name; see [Describe].
	Table string
	// Key are the columns by which rows are found. They need no unique index: all
	// rows of a key are deleted, and an index that finds them is the user's care.
	// Generated columns can be part of it.
	Key []Column[T]

	plan atomic.Pointer[deletePlan[T]]
}

var _ Sink[schema.Row] = (*Delete[schema.Row])(nil)

// deletePlan is what Prepare found out. It does not change.
type deletePlan[T any] struct {
	sql     string
	key     *rowEncoder[T]
	targets []*target
	memory  sync.Pool // of *deleteMemory
}

// deleteMemory is the memory that one Apply uses.
type deleteMemory struct {
	keys   *fold
	cells  cells
	arena  []byte
	params arrays
}

// Prepare looks at the table. It may be called again at any time.
func (s *Delete[T]) Prepare(ctx context.Context, conn *pgx.Conn) error {
	return prepareTable(ctx, conn, "delete "+s.Table, s.Table, s.compile, &s.plan)
}

func (s *Delete[T]) compile(table *Table) (*deletePlan[T], error) {
	if len(s.Key) == 0 {
		return nil, errors.New("no Key: it says which rows a message means")
	}
	var names []string
	for _, c := range s.Key {
		names = append(names, c.Name)
	}
	columns, err := bind(readable(table), s.Key, nil, names)
	if err != nil {
		return nil, err
	}
	plan := &deletePlan[T]{key: newRowEncoder(columns)}
	for i := range columns {
		plan.targets = append(plan.targets, &plan.key.targets[i])
	}
	plan.sql = deleteSQL(table, plan.targets, "")
	plan.memory.New = func() any {
		m := &deleteMemory{keys: newFold(), cells: make(cells, len(columns))}
		for range columns {
			m.params = append(m.params, &array{})
		}
		return m
	}
	return plan, nil
}

// readable is the table as one that is only compared with: a generated column
// has values too.
func readable(t *Table) *Table {
	r := *t
	r.Columns = slices.Clone(t.Columns)
	for i := range r.Columns {
		r.Columns[i].Generated = false
	}
	return &r
}

// Apply implements [Sink].
func (s *Delete[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	plan := s.plan.Load()
	switch {
	case plan == nil:
		return fmt.Errorf("sinks: delete %s: %w", s.Table, errNotPrepared)
	case len(batch) == 0:
		return nil
	}
	m := plan.memory.Get().(*deleteMemory)
	defer plan.memory.Put(m)
	m.keys.reset()
	err := gather(batch, func(_ int, msg *schema.Message[T]) error { return plan.fold(m, msg) })
	if err != nil {
		return fmt.Errorf("sinks: delete %s: %w", s.Table, err)
	}
	for i, t := range plan.targets {
		m.params[i].reset(t.carrier)
	}
	for _, place := range m.keys.sorted() {
		appendKey(m.params, m.keys.keys[place])
	}
	return exec(ctx, tx, "delete "+s.Table, plan.sql, m.params)
}

func (p *deletePlan[T]) fold(m *deleteMemory, msg *schema.Message[T]) (err error) {
	if msg.Tombstone() {
		m.arena, err = p.key.tombstone(m.arena[:0], m.cells, msg)
	} else {
		m.arena, err = p.key.encode(m.arena[:0], m.cells, msg)
	}
	if err != nil {
		return err
	}
	if err := p.key.keyed(m.cells, msg.Record); err != nil {
		return err
	}
	m.keys.place(m.arena)
	return nil
}
