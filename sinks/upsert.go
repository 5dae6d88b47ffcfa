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

// Mode says what [Upsert] does with a column that a message leaves out.
type Mode string

// The modes.
const (
	// Merge leaves the column of a row that is there as it is. It is the default.
	Merge Mode = "merge"
	// Replace sets the column to its default, as for a new row.
	Replace Mode = "replace"
)

// TombstoneRule says what [Upsert] does with a tombstone.
type TombstoneRule string

// The rules for tombstones.
const (
	// TombstoneDelete deletes the row of the key. It is the default.
	TombstoneDelete TombstoneRule = "delete"
	// TombstoneIgnore does nothing.
	TombstoneIgnore TombstoneRule = "ignore"
	// TombstoneError makes it a [schema.ReasonTombstone] fault.
	TombstoneError TombstoneRule = "error"
)

// Upsert sets the row of each message's key to what the message says. Of the
// messages of one key in a batch the last one wins, field by field in [Merge]
// mode. Running again on the same batch changes nothing.
//
// A null field is written as null. A missing field is subject to the Mode. In
// Merge mode a message may leave out even a column that is not null and has no
// default, if its row is there; if not, it is a [schema.ReasonNotNull] fault.
//
// A tombstone has no body: its key comes from pseudo-fields such as $key, or, if
// the key is one column, from the record key as text. A row that was deleted and
// written again within a batch keeps nothing from before, as it would not in two.
//
// Statements are one for the deleted keys and one for each set of columns that
// the rows of the batch have, each in the order of the keys. Keys of types that
// PostgreSQL alone can compare (citext, inet, interval …) are told apart by
// their text; two that are equal to PostgreSQL and differ as text in one batch
// end in SQLSTATE 21000. Deletes come before writes, and rows that must be there
// are locked as PostgreSQL finds them; if keys also move between partitions, two
// workers can then deadlock (40P01), and one of them is tried again.
//
// With a Version, messages of the same version as the row are not older and are
// written; a row whose version is null is older than any message, and a message
// without a version is a [schema.ReasonNotNull] fault. Tombstones too leave a
// newer row alone; once a row is deleted, nothing is left that knows of its
// version. One more statement locks the rows of the batch and reads their
// versions, so that a batch has the effects of its messages one by one.
//
// Of the states of a key within a batch only the last is written. A value that
// the table would refuse (a check, a foreign key), and that is followed in the
// same batch by a newer state of its key, is never seen by the table and is no
// fault; in a batch of its own it would be. What the conversion to the column's
// type refuses is a fault in each state. Where another
// unique column was legal only by way of a state between (a swap of two values
// by way of a third), PostgreSQL refuses the batch (23505) although it would
// take the messages one by one; the engine then applies fewer at a time.
//
// Use it as a pointer, and call Prepare first.
type Upsert[T any] struct {
	// Table is the table's name; see [Describe].
	Table string
	// Key names the columns that make the key, all among those written. They
	// must have a unique index.
	Key []string
	// Columns are the columns to write. Where the body is a [schema.Row] they
	// default to each of Fields that has a column of the same name.
	Columns []Column[T]
	// Fields are the decoder's. Needed only where Columns is empty.
	Fields *schema.Fields
	// Mode is Merge or Replace. Defaults to Merge.
	Mode Mode
	// Tombstone says what a tombstone does. Defaults to TombstoneDelete.
	Tombstone TombstoneRule
	// Version names the column, among those written, by which the states of a row
	// are ordered: a message whose version is older than the row's leaves the row
	// alone, and is reported as stale. It is for keys that come from several
	// partitions or twice. The column is written from a field, or from $offset or
	// $time where one partition has all of a key. Defaults to none: the message
	// that comes last wins.
	Version string

	plan atomic.Pointer[upsertPlan[T]]
}

var _ Sink[schema.Row] = (*Upsert[schema.Row])(nil)

// upsertPlan is what Prepare found out. It does not change.
type upsertPlan[T any] struct {
	table     *Table
	mode      Mode
	tombstone TombstoneRule
	encoder   *rowEncoder[T]
	version   int      // the place of the version's column, or -1
	key       []int    // the places of the key's columns
	others    []string // the names of the other columns
	memory    sync.Pool
}

// Prepare looks at the table. It may be called again at any time.
func (s *Upsert[T]) Prepare(ctx context.Context, conn *pgx.Conn) error {
	return prepareTable(ctx, conn, "upsert "+s.Table, s.Table, s.compile, &s.plan)
}

func (s *Upsert[T]) compile(table *Table) (*upsertPlan[T], error) {
	columns, err := bind(table, s.Columns, s.Fields, s.Key)
	if err = errors.Join(err, s.check(table)); err != nil {
		return nil, err
	}
	version, err := s.checkVersion(columns)
	if err != nil {
		return nil, err
	}
	plan := &upsertPlan[T]{
		table: table, encoder: newRowEncoder(columns), version: version,
		mode: orDefault(s.Mode, Merge), tombstone: orDefault(s.Tombstone, TombstoneDelete),
	}
	for i := range columns {
		if columns[i].key {
			plan.key = append(plan.key, i)
		} else {
			plan.others = append(plan.others, columns[i].Name)
		}
	}
	plan.memory.New = func() any { return newUpsertMemory(plan.encoder.targets) }
	return plan, errors.Join(s.checkKey(plan.encoder), needed(table, columns))
}

// check validates what does not depend on the columns that are written.
func (s *Upsert[T]) check(table *Table) error {
	var faults []error
	if len(s.Key) == 0 {
		faults = append(faults, errors.New("no Key: it says which row a message means"))
	} else if err := table.Unique(s.Key...); err != nil {
		faults = append(faults, err)
	}
	if !slices.Contains([]Mode{"", Merge, Replace}, s.Mode) {
		faults = append(faults, fmt.Errorf("mode %q is neither merge nor replace", s.Mode))
	}
	if !slices.Contains([]TombstoneRule{"", TombstoneDelete, TombstoneIgnore, TombstoneError}, s.Tombstone) {
		faults = append(faults, fmt.Errorf("tombstone %q is none of delete, ignore and error", s.Tombstone))
	}
	return errors.Join(faults...)
}

func (s *Upsert[T]) checkKey(e *rowEncoder[T]) error {
	var faults []error
	for _, name := range s.Key {
		if !slices.ContainsFunc(e.targets, func(t target) bool { return t.Name == name }) {
			faults = append(faults, fmt.Errorf("key column %q is not written: give it among Columns", name))
		}
	}
	return errors.Join(faults...)
}

// Apply implements [Sink].
func (s *Upsert[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	_, err := s.ApplyReport(ctx, tx, batch)
	return err
}

// ApplyReport applies the batch and says which messages were stale; it answers
// with no outcomes where none was.
func (s *Upsert[T]) ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]schema.Outcome, error) {
	plan := s.plan.Load()
	if plan == nil {
		return nil, fmt.Errorf("sinks: upsert %s: %w", s.Table, errNotPrepared)
	}
	m := plan.memory.Get().(*upsertMemory)
	defer plan.memory.Put(m)
	m.reset()
	all := outcomes{size: len(batch)}
	err := gather(batch, func(place int, msg *schema.Message[T]) error { return plan.fold(m, place, msg) })
	if err == nil {
		err = plan.settle(ctx, tx, m, &all)
	}
	if err == nil {
		plan.fill(m)
		err = plan.write(ctx, tx, m, batch)
	}
	if err != nil {
		return nil, fmt.Errorf("sinks: upsert %s: %w", s.Table, err)
	}
	return all.list, nil
}

func orDefault[S ~string](s, def S) S {
	if s == "" {
		return def
	}
	return s
}
