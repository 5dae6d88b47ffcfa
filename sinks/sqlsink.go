package sinks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// Param is a column of the relation that the statement of a [SQL] reads.
type Param[T any] struct {
	// Column says what the column is called and where its value comes from.
	Column[T]
	// Type is the column's type as SQL writes it, such as numeric(12,2), text[]
	// or a domain. A value is checked and converted as it is for a column of a
	// table. Defaults to text.
	Type string
}

// Rows says how many rows a statement must affect.
type Rows string

// The rules for rows.
const (
	// RowsEach asks for exactly one row for each message. It is the default.
	RowsEach Rows = "each"
	// RowsAny takes any number.
	RowsAny Rows = "any"
)

// SQL runs a statement of one's own, once for a batch. The statement reads the
// messages of the batch from a relation named message: a column for each of
// Params, and "ordinality", the message's place in the batch, counted from 1.
//
//	insert into audit (id, note)
//	select m.id, 'paid ' || m.amount from message m
//
//	update stock set n = stock.n - m.n from message m where stock.sku = m.sku
//
// It is one insert, update, delete, merge, select or with; what it reads and
// writes is up to it. Values never become part of its text. Prepare has the
// server prepare it, so that a mistake is found at the start, with its place.
//
// Two messages of a batch may mean one row, and PostgreSQL then updates the row
// for one of them only. So the statement must affect exactly one row for each
// message: a batch for which it does not is refused without naming a message,
// which makes the engine cut it until each part affects as many rows as it has
// messages. A message for which this fails alone, such as one whose row is not
// there, is a [schema.ReasonHandler] fault. A statement that groups its messages
// (with sum(m.n) and group by m.sku), or that may affect none, sets Rows to
// [RowsAny] and answers for itself; it is quicker where messages meet often.
//
// A missing field is null here. A tombstone is a [schema.ReasonTombstone] fault,
// unless all Params come from the record.
//
// What becomes of running it twice is not known: it relies on the idempotency
// key. Use it as a pointer, and call Prepare first.
type SQL[T any] struct {
	// Name names the sink in errors. Defaults to nothing.
	Name string
	// Statement is the text, without parameters.
	Statement string
	// Params are the columns of the relation message. At least one is needed.
	Params []Param[T]
	// Rows says how many rows the statement must affect. Defaults to RowsEach.
	Rows Rows

	plan atomic.Pointer[sqlPlan[T]]
}

var _ Sink[schema.Row] = (*SQL[schema.Row])(nil)

// sqlPlan is what Prepare found out. It does not change.
type sqlPlan[T any] struct {
	sql      string
	each     bool
	bodiless bool // all parameters come from the record
	encoder  *rowEncoder[T]
	memory   sync.Pool // of *sqlMemory
}

type sqlMemory struct {
	arena  []byte
	cells  cells
	params arrays
}

// Kind implements [Kinder].
func (*SQL[T]) Kind() Kind { return Opaque }

func (s *SQL[T]) what() string {
	if s.Name == "" {
		return "sql"
	}
	return "sql " + s.Name
}

// Prepare has the server prepare the statement. It may be called again at any
// time.
func (s *SQL[T]) Prepare(ctx context.Context, conn *pgx.Conn) error {
	plan, err := s.prepare(ctx, conn)
	if err != nil {
		return prefixed(err, "sinks: "+s.what())
	}
	s.plan.Store(plan)
	return nil
}

func (s *SQL[T]) prepare(ctx context.Context, conn *pgx.Conn) (*sqlPlan[T], error) {
	if err := errors.Join(s.check(), checkMode(conn)); err != nil {
		return nil, err
	}
	columns, err := s.bind(ctx, conn)
	if err != nil {
		return nil, err
	}
	plan := &sqlPlan[T]{each: s.Rows != RowsAny, bodiless: true, encoder: newRowEncoder(columns)}
	targets := make([]*target, len(columns))
	for i := range columns {
		targets[i] = &plan.encoder.targets[i]
		plan.bodiless = plan.bodiless && columns[i].OfRecord
	}
	text := wrap(s.Statement, targets)
	plan.sql = text.sql
	plan.memory.New = func() any {
		m := &sqlMemory{cells: make(cells, len(columns)), params: make(arrays, len(columns))}
		for i := range m.params {
			m.params[i] = &array{}
		}
		return m
	}
	return plan, text.try(ctx, conn)
}

func (s *SQL[T]) check() error {
	var faults []error
	if len(s.Params) == 0 {
		faults = append(faults, errors.New("no Params: they are the columns of the relation message"))
	}
	if !readsMessage(s.Statement) {
		faults = append(faults, errors.New("the statement does not read the messages: select from the relation message"))
	}
	if s.Rows != "" && s.Rows != RowsEach && s.Rows != RowsAny {
		faults = append(faults, fmt.Errorf("rows %q is neither each nor any", s.Rows))
	}
	return errors.Join(faults...)
}

// Apply implements [Sink].
func (s *SQL[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	plan := s.plan.Load()
	switch {
	case plan == nil:
		return fmt.Errorf("sinks: %s: %w", s.what(), errNotPrepared)
	case len(batch) == 0:
		return nil
	}
	m := plan.memory.Get().(*sqlMemory)
	defer plan.memory.Put(m)
	if err := plan.fill(m, batch); err != nil {
		return fmt.Errorf("sinks: %s: %w", s.what(), err)
	}
	tag, err := tx.Exec(ctx, plan.sql, m.params)
	if err == nil && plan.each && tag.RowsAffected() != int64(len(batch)) {
		err = miscounted(tag.RowsAffected(), batch)
	}
	if err != nil {
		return fmt.Errorf("sinks: %s: %w", s.what(), err)
	}
	return nil
}

// miscounted names the message only where there is no doubt.
func miscounted[T any](rows int64, batch []schema.Message[T]) error {
	if len(batch) == 1 {
		return schema.Faultf(batch[0].Record, schema.ReasonHandler, "the statement has affected %d rows, not one", rows)
	}
	return schema.Faultf(nil, schema.ReasonHandler, "the statement has affected %d rows for %d messages", rows, len(batch))
}

// fill makes the parameters, in the order of the batch.
func (p *sqlPlan[T]) fill(m *sqlMemory, batch []schema.Message[T]) error {
	for i := range m.params {
		m.params[i].reset(p.encoder.targets[i].carrier)
	}
	return gather(batch, func(_ int, msg *schema.Message[T]) (err error) {
		if msg.Tombstone() && !p.bodiless {
			return schema.Faultf(msg.Record, schema.ReasonTombstone, "a tombstone has no fields for the statement")
		}
		if m.arena, err = p.encoder.encode(m.arena[:0], m.cells, msg); err != nil {
			return err
		}
		for i, cell := range m.cells {
			if len(cell) == 0 {
				cell = nullCell
			}
			m.params[i].append(cell)
		}
		return nil
	})
}
