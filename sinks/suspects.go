package sinks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// A batch that PostgreSQL refuses is refused for one row, and by halves it takes
// many tries to find which. A sink that knows its table can ask for all such rows
// by one query instead: which rows break a check, refer to what is not there, or
// meet a row of another key. The answer is no more than a suspicion (a row can
// come or go until the statement runs, and triggers are not asked), so whoever
// has it tries the suspects one by one.

// suspecter is a [Sink] that can suspect messages, as package processor asks for.
type suspecter[T any] interface {
	Suspects(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]int, error)
}

// suspectsOf asks a sink of either sort; one that cannot tell suspects nobody.
func suspectsOf[T any](ctx context.Context, tx pgx.Tx, s Sink[T], batch []schema.Message[T]) ([]int, error) {
	if k, ok := s.(suspecter[T]); ok && len(batch) > 0 {
		return k.Suspects(ctx, tx, batch)
	}
	return nil, nil
}

// Suspects returns the places of the messages that the table is likely to
// refuse. It changes nothing.
func (s *Insert[T]) Suspects(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]int, error) {
	plan := s.plan.Load()
	if plan == nil {
		return nil, fmt.Errorf("sinks: %s: %w", s.what(), errNotPrepared)
	}
	l := lookout[T]{table: plan.table, encoder: plan.encoder, repeats: true}
	if plan.rule == ConflictError {
		l.keys = plan.table.UniqueKeys
	}
	if plan.rule == ConflictDuplicate {
		l.keys = slices.DeleteFunc(slices.Clone(plan.table.UniqueKeys), plan.encoder.isKey)
	}
	places, err := l.suspects(ctx, tx, batch)
	if err != nil {
		return nil, fmt.Errorf("sinks: %s: suspects: %w", s.what(), err)
	}
	return places, nil
}

// Suspects returns the places of the messages that the table is likely to
// refuse. It changes nothing.
func (s *Upsert[T]) Suspects(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]int, error) {
	plan := s.plan.Load()
	if plan == nil {
		return nil, fmt.Errorf("sinks: upsert %s: %w", s.Table, errNotPrepared)
	}
	l := lookout[T]{table: plan.table, encoder: plan.encoder}
	l.keys = slices.DeleteFunc(slices.Clone(plan.table.UniqueKeys), plan.encoder.isKey)
	places, err := l.suspects(ctx, tx, batch)
	if err != nil {
		return nil, fmt.Errorf("sinks: upsert %s: suspects: %w", s.Table, err)
	}
	return places, nil
}

// Suspects joins the suspects of the sinks.
func (t *TeeSink[T]) Suspects(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]int, error) {
	var all []int
	for _, s := range t.sinks {
		some, err := suspectsOf(ctx, tx, s, batch)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Suspects returns the sink's suspects among the messages that match.
func (w *WhereSink[T]) Suspects(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) ([]int, error) {
	matching, places, err := w.match(batch)
	if err != nil {
		return nil, err
	}
	some, err := suspectsOf(ctx, tx, w.sink, matching)
	for i, n := range some {
		some[i] = places[n]
	}
	return some, err
}

// isKey reports whether the unique index is the sink's key.
func (e *rowEncoder[T]) isKey(index []string) bool {
	var key []string
	for i := range e.targets {
		if e.targets[i].key {
			key = append(key, e.targets[i].Name)
		}
	}
	return sameSet(index, key)
}

// lookout looks for the rows that a table would refuse.
type lookout[T any] struct {
	table   *Table
	encoder *rowEncoder[T]
	keys    [][]string // the unique indexes that no row may meet
	repeats bool       // nor two rows of the batch
}

func (l *lookout[T]) suspects(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) (places []int, err error) {
	rows := newRowset(l.encoder.targets)
	row := make(cells, len(l.encoder.targets))
	var arena []byte
	for i := range batch {
		// What cannot be encoded is found without the database.
		if arena, err = l.encoder.encode(arena[:0], row, &batch[i]); err == nil && l.encoder.complete(row, batch[i].Record) == nil {
			rows.add(row, i)
		}
	}
	for _, sh := range rows.filled() {
		sql := suspectSQL(l.table, sh.targets, l.keys, l.repeats)
		if sql == "" {
			continue
		}
		found, err := placesOf(ctx, tx, sql, sh.args())
		if err != nil {
			return nil, err
		}
		for _, n := range found {
			places = append(places, sh.places[n-1])
		}
	}
	slices.Sort(places)
	return slices.Compact(places), nil
}

// place is the place of a row in the statement, under a name that no column has.
const place = `"$place"`

// suspectSQL answers with the places of the rows that the table would refuse;
// it is empty where nothing can be asked.
func suspectSQL(t *Table, targets []*target, keys [][]string, repeats bool) string {
	values := []string{"u.n as " + place}
	for i, target := range targets {
		values = append(values, fmt.Sprintf("%s as %s", value(target, i), quote(target.Name)))
	}
	asked := append(broken(t.constraints, targets), met(t, targets, keys, repeats)...)
	if len(asked) == 0 {
		return ""
	}
	return fmt.Sprintf("with r as materialized (\n\tselect %s\n\tfrom %s\n)\n%s\norder by 1",
		strings.Join(values, ", "), source(targets, true), strings.Join(asked, "\nunion\n"))
}

// broken asks for the rows that break a check or a foreign key.
func broken(c constraints, targets []*target) (asked []string) {
	for _, k := range c.checks {
		if writes(targets, k.columns) {
			asked = append(asked, placesWhere("r", "not ("+k.expression+")"))
		}
	}
	for _, k := range c.foreign {
		if writes(targets, k.columns) {
			asked = append(asked, placesWhere("r", fmt.Sprintf("%s\n\tand not exists (select from %s as t where %s)",
				present(k.columns), k.table, equal("t", k.found, k.columns))))
		}
	}
	return asked
}

// met asks for the rows that meet another row in a unique index: one of the
// table that is not their own, or with repeats one before them in the batch.
func met(t *Table, targets []*target, keys [][]string, repeats bool) (asked []string) {
	other := ""
	if own := keyNames(targets); len(own) > 0 {
		other = " and not (" + equal("t", own, own) + ")"
	}
	for _, key := range keys {
		if !writes(targets, key) {
			continue
		}
		asked = append(asked, placesWhere("r", fmt.Sprintf("exists (select from %s as t where %s%s)", t.ref(), equal("t", key, key), other)))
		if repeats {
			asked = append(asked, placesWhere(fmt.Sprintf("(select %s, row_number() over (partition by %s order by %[1]s) as i from r where %[3]s) as r",
				place, quoted(key), present(key)), "i > 1"))
		}
	}
	return asked
}

func placesWhere(from, condition string) string {
	return fmt.Sprintf("select %s\nfrom %s\nwhere %s", place, from, condition)
}

// writes reports whether all of the columns are among the targets.
func writes(targets []*target, columns []string) bool {
	return !slices.ContainsFunc(columns, func(name string) bool {
		return !slices.ContainsFunc(targets, func(t *target) bool { return t.Name == name })
	})
}

func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = quote(name)
	}
	return strings.Join(all, ", ")
}

func keyNames(targets []*target) (names []string) {
	for _, t := range targets {
		if t.key {
			names = append(names, t.Name)
		}
	}
	return names
}

// present says that no column is null: a null meets nothing and refers to nothing.
func present(columns []string) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = "r." + quote(c) + " is not null"
	}
	return strings.Join(all, " and ")
}

// equal compares columns of a table with columns of the rows.
func equal(table string, theirs, ours []string) string {
	all := make([]string, len(ours))
	for i := range ours {
		all[i] = fmt.Sprintf("%s.%s = r.%s", table, quote(theirs[i]), quote(ours[i]))
	}
	return strings.Join(all, " and ")
}
