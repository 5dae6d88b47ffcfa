package sinks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables"
)

// Sum adds to totals, such as balances and counters: one row for each key, and
// in it the columns that are added to. The amounts of a batch are added up in
// memory for each key, exactly, and one statement adds them to the table; a key
// that is new begins at 0.
//
// Nothing is rounded. An amount that is missing, null, no number, finer than the
// column's scale or outside of its range is a fault of its message, and so is a
// tombstone. A total that leaves the column's range is PostgreSQL's to refuse
// (SQLSTATE 22003). Keys are compared as [Upsert] does.
//
// Running again on the same batch adds it again: Sum relies on the idempotency
// key. Use it as a pointer, and call Prepare first.
type Sum[T any] struct {
	// Table is the table's name; see [Describe].
	Table string
	// Key are the columns that make the key. They must have a unique index.
	Key []Column[T]
	// Add are the columns to add to, of the types smallint, integer, bigint and
	// numeric. [Const] counts.
	Add []Column[T]

	plan atomic.Pointer[sumPlan[T]]
}

var _ Sink[schema.Row] = (*Sum[schema.Row])(nil)

type sumPlan[T any] struct {
	sql     string
	key     *rowEncoder[T]
	add     []bound[T]
	targets []*target
	memory  sync.Pool // of *sumMemory
}

type sumMemory struct {
	keys    *fold
	cells   cells
	scratch []byte
	amounts []amount // by place, then by column
	params  arrays
}

// Prepare looks at the table. It may be called again at any time.
func (s *Sum[T]) Prepare(ctx context.Context, conn *pgx.Conn) error {
	return prepareTable(ctx, conn, "sum "+s.Table, s.Table, s.compile, &s.plan)
}

func (s *Sum[T]) compile(table *Table) (*sumPlan[T], error) {
	if len(s.Key) == 0 || len(s.Add) == 0 {
		return nil, errors.New("both Key and Add are needed: which row, and what to add to it")
	}
	var names []string
	for _, c := range s.Key {
		names = append(names, c.Name)
	}
	columns, err := bind(table, append(s.Key[:len(s.Key):len(s.Key)], s.Add...), nil, names)
	if err != nil {
		return nil, err
	}
	key, add := columns[:len(s.Key)], columns[len(s.Key):]
	err = errors.Join(table.Unique(names...), summable(add), needed(table, columns))
	if err != nil {
		return nil, err
	}
	plan := &sumPlan[T]{key: newRowEncoder(key), add: add}
	for i := range columns {
		plan.targets = append(plan.targets, &columns[i].target)
	}
	plan.sql = sumSQL(table, plan.targets)
	plan.memory.New = func() any { return newSumMemory(plan.targets, len(key)) }
	return plan, nil
}

// summable refuses the types in which a sum is not exact, and lets all amounts
// travel as numeric: a sum that an integer column cannot hold is then refused
// by PostgreSQL when it is assigned, as any other overflow.
func summable[T any](add []bound[T]) error {
	var faults []error
	for i := range add {
		c := &add[i]
		switch c.BaseOID {
		case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID:
			c.carrier = carrierOf(&TableColumn{BaseOID: pgtype.NumericOID})
		default:
			faults = append(faults, fmt.Errorf("column %q is a %s, and a sum is exact only in smallint, integer, bigint and numeric", c.Name, c.Type))
		}
	}
	return errors.Join(faults...)
}

func newSumMemory(targets []*target, keys int) *sumMemory {
	m := &sumMemory{keys: newFold(), cells: make(cells, keys)}
	for range targets {
		m.params = append(m.params, &array{})
	}
	return m
}

// Apply implements [Sink].
func (s *Sum[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	plan := s.plan.Load()
	switch {
	case plan == nil:
		return fmt.Errorf("sinks: sum %s: %w", s.Table, errNotPrepared)
	case len(batch) == 0:
		return nil
	}
	m := plan.memory.Get().(*sumMemory)
	defer plan.memory.Put(m)
	m.keys.reset()
	clear(m.amounts)
	m.amounts = m.amounts[:0]
	err := gather(batch, func(_ int, msg *schema.Message[T]) error { return plan.fold(m, msg) })
	if err == nil {
		err = plan.fill(m)
	}
	if err != nil {
		return fmt.Errorf("sinks: sum %s: %w", s.Table, err)
	}
	return exec(ctx, tx, "sum "+s.Table, plan.sql, m.params)
}

// fold adds one message to the amounts of its key.
func (p *sumPlan[T]) fold(m *sumMemory, msg *schema.Message[T]) (err error) {
	if msg.Tombstone() {
		return schema.Faultf(msg.Record, schema.ReasonTombstone, "a tombstone has no amount to add")
	}
	if m.scratch, err = p.key.encode(m.scratch[:0], m.cells, msg); err != nil {
		return err
	}
	if err := p.key.keyed(m.cells, msg.Record); err != nil {
		return err
	}
	place, added := m.keys.place(m.scratch)
	if added {
		m.amounts = append(m.amounts, make([]amount, len(p.add))...)
	}
	for i := range p.add {
		if err := add(&m.amounts[place*len(p.add)+i], &p.add[i], msg); err != nil {
			return err
		}
	}
	return nil
}

func add[T any](sum *amount, c *bound[T], msg *schema.Message[T]) error {
	v, err := c.Value(msg)
	if err != nil {
		return blame(err, msg.Record, c.Field, c.Name)
	}
	switch v.Kind {
	case schema.Missing:
		return absent(msg.Record, c.Field, c.Name, "missing")
	case schema.Null:
		return absent(msg.Record, c.Field, c.Name, "null")
	case schema.Bytes:
		v.Kind = schema.String
	default:
	}
	d, err := summand(&c.TableColumn, v)
	if err != nil {
		return blame(err, msg.Record, c.Field, c.Name)
	}
	sum.add(v.Raw, &d)
	return nil
}

// summand is a number that the column could hold on its own.
func summand(c *TableColumn, v schema.Value) (d decimal, err error) {
	if d, err = numberOf(c, v); err != nil {
		return d, err
	}
	switch c.BaseOID {
	case pgtype.Int2OID:
		_, err = integer(c, v, 16)
	case pgtype.Int4OID:
		_, err = integer(c, v, 32)
	case pgtype.Int8OID:
		_, err = integer(c, v, 64)
	default:
		err = checkNumeric(c, v, &d)
	}
	return d, err
}

// fill writes the parameters, by key.
func (p *sumPlan[T]) fill(m *sumMemory) (err error) {
	for i, t := range p.targets {
		m.params[i].reset(t.carrier)
	}
	keys := len(p.key.columns)
	for _, place := range m.keys.sorted() {
		appendKey(m.params, m.keys.keys[place])
		for i := range p.add {
			sum := &m.amounts[place*len(p.add)+i]
			if m.scratch, err = sum.appendElement(m.scratch[:0]); err != nil {
				return fmt.Errorf("the sum for column %q: %w", p.add[i].Name, err)
			}
			m.params[keys+i].append(m.scratch)
		}
	}
	return nil
}

// appendElement appends the sum as an element of an array of numeric.
func (a *amount) appendElement(dst []byte) ([]byte, error) {
	var text [64]byte
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst, err := tables.AppendNumericText(dst, a.appendText(text[:0]))
	if err != nil {
		return dst, err
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst, nil
}
