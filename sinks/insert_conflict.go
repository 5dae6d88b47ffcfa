package sinks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// ConflictRule says what a row means to [Insert] that a unique index of the
// table refuses.
type ConflictRule string

// The rules for conflicts.
const (
	// ConflictError is a unique violation (SQLSTATE 23505), which the engine
	// makes the fault of its message.
	ConflictError ConflictRule = "error"
	// ConflictDuplicate says that the message's effect is there already, where
	// the row that is met has the columns of the idempotency key: the constraint
	// is a second guard behind the keys, which may have been purged. A row that
	// any other index refuses is an error.
	ConflictDuplicate ConflictRule = "duplicate"
	// ConflictIgnore calls every row that is not inserted a duplicate, whatever
	// has kept it out: any unique index, any exclusion constraint, a trigger.
	ConflictIgnore ConflictRule = "ignore"
)

// guards reports whether the sink tells duplicates. Before Prepare, the default
// counts as not.
func (s *Insert[T]) guards() bool {
	if plan := s.plan.Load(); plan != nil {
		return plan.rule != ConflictError
	}
	return s.OnConflict == ConflictDuplicate || s.OnConflict == ConflictIgnore
}

// resolve settles the rule, and marks the columns of the idempotency key, which
// are never left out and never null: a null meets no other row.
func (s *Insert[T]) resolve(table *Table, columns []bound[T]) (ConflictRule, error) {
	switch s.OnConflict {
	case ConflictError, ConflictIgnore:
		return s.OnConflict, nil
	case "", ConflictDuplicate:
	default:
		return "", fmt.Errorf("on_conflict %q is none of error, duplicate and ignore", s.OnConflict)
	}
	key, err := s.constraint(table, columns)
	switch {
	case err != nil && s.OnConflict == "":
		return ConflictError, nil
	case err != nil:
		return "", fmt.Errorf("on_conflict duplicate: %w; add it, or set on_conflict to error", err)
	}
	for i := range columns {
		if c := &columns[i]; slices.Contains(key, c.Name) {
			c.key, c.NotNull, c.HasDefault = true, true, false
		}
	}
	return ConflictDuplicate, nil
}

// constraint returns the columns of the unique index that is made of exactly the
// fields of the idempotency key. A field may be written to several columns.
func (s *Insert[T]) constraint(table *Table, columns []bound[T]) ([]string, error) {
	if len(s.KeyFields) == 0 {
		return nil, errors.New("no KeyFields: they say which columns the idempotency key is in")
	}
	from := make(map[string]string, len(columns)) // of a column's name: its field
	var names, lost []string
	for i := range columns {
		from[columns[i].Name] = columns[i].Field
	}
	for _, field := range s.KeyFields {
		i := slices.IndexFunc(columns, func(c bound[T]) bool { return c.Field == field })
		if i < 0 {
			lost = append(lost, field)
			continue
		}
		names = append(names, columns[i].Name)
	}
	if len(lost) > 0 {
		return nil, fmt.Errorf("no column is written from %s, of which the idempotency key is made", strings.Join(lost, ", "))
	}
	for _, index := range table.UniqueKeys {
		fields := make([]string, len(index))
		for i, name := range index {
			fields[i] = from[name]
		}
		if sameSet(fields, s.KeyFields) {
			return index, nil
		}
	}
	return nil, table.Unique(names...)
}

// meets reports whether a row was refused because of one that is there.
func meets(err error) bool {
	server, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (server.Code == "23505" || server.Code == "23P01")
}

// writeOnce inserts the rows that meet no other, and notes the others.
func (p *insertPlan[T]) writeOnce(ctx context.Context, tx pgx.Tx, sh *shape, all *outcomes) error {
	if len(sh.targets) == 0 {
		return p.writeDefaultsOnce(ctx, tx, sh, all)
	}
	losers, err := placesOf(ctx, tx, insertOnceSQL(p.table, sh.targets, p.rule, p.lookUp), sh.args())
	if err != nil || len(losers) == 0 {
		return err
	}
	if losers[0] == 0 {
		return errors.New("some rows were not inserted, and which ones is not to be told: a trigger of the table changes the columns that are written; set on_conflict to error")
	}
	if p.rule == ConflictDuplicate {
		if err := p.verify(ctx, tx, sh, losers); err != nil {
			return err
		}
	}
	for _, n := range losers {
		all.at(sh.places[n-1]).Duplicate = true
	}
	return nil
}

// verify proves that each row which was not inserted has met the row of its key.
// Without it a trigger that drops rows would make duplicates of all messages.
func (p *insertPlan[T]) verify(ctx context.Context, tx pgx.Tx, sh *shape, losers []int64) error {
	none, err := rowless(ctx, tx, p.table, sh, losers)
	if err == nil && len(none) > 0 {
		err = errors.New("a row was not inserted although no row of its key is to be seen: another transaction has just deleted it, or a trigger or a policy of the table stands against it")
	}
	return err
}

// rowless returns those of the places whose key has no row in the table.
func rowless(ctx context.Context, tx pgx.Tx, t *Table, sh *shape, places []int64) ([]int64, error) {
	var some array
	some.reset(carrierOf(&TableColumn{BaseOID: pgtype.Int8OID}))
	for _, n := range places {
		some.append(int8Cell(n))
	}
	var key []*target
	var args arrays
	for i, target := range sh.targets {
		if target.key {
			key, args = append(key, target), append(args, sh.params[i])
		}
	}
	return placesOf(ctx, tx, absentSQL(t, key), append(args, &some))
}

// writeDefaultsOnce is for rows without a column. They are all alike.
func (p *insertPlan[T]) writeDefaultsOnce(ctx context.Context, tx pgx.Tx, sh *shape, all *outcomes) error {
	tag, err := tx.Exec(ctx, defaultsSQL(p.table)+"\non conflict do nothing", len(sh.places))
	if err != nil {
		return err
	}
	for _, place := range sh.places[tag.RowsAffected():] {
		all.at(place).Duplicate = true
	}
	return nil
}

// placesOf runs a statement that answers with places of rows, 0 for null.
func placesOf(ctx context.Context, tx pgx.Tx, sql string, args arrays) ([]int64, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
