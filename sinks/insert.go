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

// Insert appends one row for each message, in the order of the batch.
//
// A missing field leaves its column to the column's default, a null one is
// null. Rows that leave out the same columns are written by one statement, which
// normally is all of them; rows of another shape come after it.
//
// A tombstone is a [schema.ReasonTombstone] fault, for there is no row to append.
// Running again on the same batch appends it again, unless a unique constraint
// of the table stands against it; OnConflict says what that means.
//
// Use it as a pointer, and call Prepare first.
type Insert[T any] struct {
	// Table is the table's name, with its schema or found by the search_path;
	// see [Describe] for quotes.
	Table string
	// Columns are the columns to write. Where the body is a [schema.Row] they
	// default to each of Fields that has a column of the same name.
	Columns []Column[T]
	// Fields are the decoder's. Needed only where Columns is empty.
	Fields *schema.Fields
	// OnConflict says what a row means that the table refuses because of one that
	// is there. Defaults to [ConflictDuplicate] where KeyFields are given and the
	// table has a unique index on exactly their columns, else to [ConflictError].
	OnConflict ConflictRule
	// KeyFields are the Field of the columns that the pipeline's idempotency key
	// is taken from, such as "id", or "$topic", "$partition" and "$offset". All
	// messages of one key then meet in one row. Empty where the key is taken from
	// what no column holds.
	KeyFields []string
	// LookUp asks which rows are there before the others are written, in the order
	// of their keys and not of the batch. It pays where duplicates are common, as
	// where the constraint is the only guard and no key was admitted before, and
	// needs ConflictDuplicate. Only a [schema.FirstTry] does so. Defaults to
	// false: the rows are written, and only a row that is met starts the search.
	LookUp bool

	plan atomic.Pointer[insertPlan[T]]
}

var _ Sink[schema.Row] = (*Insert[schema.Row])(nil)

// insertPlan is what Prepare found out. It does not change.
type insertPlan[T any] struct {
	table    *Table
	encoder  *rowEncoder[T]
	rule     ConflictRule
	copyable bool
	fewest   int // messages for which COPY is used
	lookUp   bool
	memory   sync.Pool // of *insertMemory
}

// insertMemory is the memory that one Apply uses.
type insertMemory struct {
	cells cells
	arena []byte
	rows  *rowset
}

// Prepare looks at the table. It may be called again at any time.
func (s *Insert[T]) Prepare(ctx context.Context, conn *pgx.Conn) error {
	return prepareTable(ctx, conn, s.what(), s.Table, s.compile, &s.plan)
}

func (s *Insert[T]) what() string { return "insert " + s.Table }

// compile needs no connection, which the tests of the statements use.
func (s *Insert[T]) compile(table *Table) (*insertPlan[T], error) {
	columns, err := bind(table, s.Columns, s.Fields, nil)
	if err = errors.Join(err, needed(table, columns)); err != nil {
		return nil, err
	}
	rule, err := s.resolve(table, columns)
	if err = errors.Join(err, s.checkLookUp(rule)); err != nil {
		return nil, err
	}
	plan := &insertPlan[T]{table: table, encoder: newRowEncoder(columns), rule: rule, fewest: copyFewest, lookUp: s.LookUp}
	plan.copyable = copyable(table, plan.encoder.targets)
	plan.memory.New = func() any {
		return &insertMemory{cells: make(cells, len(columns)), rows: newRowset(plan.encoder.targets)}
	}
	return plan, nil
}

// needed refuses a sink that never fills a column which every row needs.
func needed[T any](t *Table, columns []bound[T]) error {
	given := make(map[string]bool, len(columns))
	for i := range columns {
		given[columns[i].Name] = true
	}
	var faults []error
	for _, c := range t.Columns {
		if c.NotNull && !c.HasDefault && !c.Generated && !given[c.Name] {
			faults = append(faults, fmt.Errorf("column %q of table %s is not null and has no default, but is not written", c.Name, t.Name))
		}
	}
	return errors.Join(faults...)
}

// Apply implements [Sink].
func (s *Insert[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	_, err := s.ApplyReport(ctx, tx, batch)
	return err
}

// ApplyReport applies the batch and says which messages are duplicates; it
// answers with no outcomes where none is.
func (s *Insert[T]) ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]schema.Outcome, error) {
	plan := s.plan.Load()
	if plan == nil {
		return nil, fmt.Errorf("sinks: %s: %w", s.what(), errNotPrepared)
	}
	m := plan.memory.Get().(*insertMemory)
	defer plan.memory.Put(m)
	m.rows.reset()
	m.rows.copying = plan.copies(ctx, len(batch))
	m.rows.keyed = m.rows.copying && plan.lookUp
	all := outcomes{size: len(batch)}
	err := gather(batch, func(place int, msg *schema.Message[T]) error { return plan.add(m, place, msg) })
	for _, sh := range m.rows.filled() {
		if err != nil {
			break
		}
		switch {
		case m.rows.keyed:
			err = plan.writeNew(ctx, tx, sh, batch, &all)
		case m.rows.copying && len(sh.targets) > 0:
			err = plan.writeCopy(ctx, tx, sh, batch)
		default:
			err = plan.write(ctx, tx, sh, &all)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sinks: %s: %w", s.what(), err)
	}
	return all.list, nil
}

// copies reports whether a batch is written by COPY. It knows no ON CONFLICT, so
// where a conflict has a meaning that takes a caller who applies the batch again.
func (p *insertPlan[T]) copies(ctx context.Context, size int) bool {
	return p.copyable && size >= p.fewest && (p.rule == ConflictError || schema.IsFirstTry(ctx))
}

// writeCopy appends the rows of a shape by COPY. Where the rule gives a conflict
// a meaning, rows that are not written may be duplicates, which COPY cannot tell.
func (p *insertPlan[T]) writeCopy(ctx context.Context, tx pgx.Tx, sh *shape, batch []schema.Message[T]) error {
	written, err := copyRows(ctx, tx, p.table, sh)
	if p.rule != ConflictError {
		if meets(err) {
			return schema.Contested(err)
		}
		if err == nil && written != int64(len(sh.places)) {
			return schema.Contested(fmt.Errorf("%d of %d rows were written", written, len(sh.places)))
		}
	}
	if err != nil && schema.IsFirstTry(ctx) {
		return copyFault(err, p.table, sh, func(place int) *schema.Record { return batch[place].Record })
	}
	return err
}

func (p *insertPlan[T]) write(ctx context.Context, tx pgx.Tx, sh *shape, all *outcomes) (err error) {
	switch {
	case p.rule != ConflictError:
		return p.writeOnce(ctx, tx, sh, all)
	case len(sh.targets) == 0:
		_, err = tx.Exec(ctx, defaultsSQL(p.table), len(sh.places))
	default:
		_, err = tx.Exec(ctx, insertSQL(p.table, sh.targets), sh.args())
	}
	return err
}

func (p *insertPlan[T]) add(m *insertMemory, place int, msg *schema.Message[T]) (err error) {
	if msg.Tombstone() {
		return schema.Faultf(msg.Record, schema.ReasonTombstone, "a tombstone has no row to insert")
	}
	if m.arena, err = p.encoder.encode(m.arena[:0], m.cells, msg); err != nil {
		return err
	}
	if err := p.encoder.complete(m.cells, msg.Record); err != nil {
		return err
	}
	m.rows.add(m.cells, place)
	return nil
}

// checkMode refuses a connection that is set to send values within the text.
func checkMode(conn *pgx.Conn) error {
	switch mode := conn.Config().DefaultQueryExecMode; mode {
	case pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec:
		return fmt.Errorf("default_query_exec_mode=%s does not know the types of parameters: use cache_statement, or cache_describe behind a pooler without prepared statements", mode)
	default:
		return nil
	}
}
