package sinks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// write runs the statements, the deletes first: a row that was deleted and
// written again must not be merged with what it was.
func (p *upsertPlan[T]) write(ctx context.Context, tx pgx.Tx, m *upsertMemory, batch []schema.Message[T]) error {
	version := p.versionName()
	for _, sh := range m.deletes.filled() {
		if _, err := tx.Exec(ctx, deleteSQL(p.table, sh.targets, version), sh.args()); err != nil {
			return err
		}
	}
	for _, sh := range m.rows.filled() {
		if column := p.lacks(sh); column >= 0 {
			if err := p.update(ctx, tx, sh, column, batch); err != nil {
				return err
			}
			continue
		}
		tag, err := tx.Exec(ctx, upsertSQL(p.table, sh.targets, p.set(sh), version), sh.args())
		if err != nil {
			return err
		}
		if version != "" && tag.RowsAffected() < int64(len(sh.places)) {
			return errRaced
		}
	}
	return nil
}

func (p *upsertPlan[T]) versionName() string {
	if p.version < 0 {
		return ""
	}
	return p.encoder.targets[p.version].Name
}

// set are the columns that are set where the row is there.
func (p *upsertPlan[T]) set(sh *shape) []string {
	if p.mode == Replace {
		return p.others // of a column that is left out, excluded has the default
	}
	var names []string
	for _, t := range sh.targets {
		if !t.key {
			names = append(names, t.Name)
		}
	}
	return names
}

// lacks returns a column that a new row needs and rows of the shape do not
// have, or -1. PostgreSQL checks it before it looks for the row that is there.
func (p *upsertPlan[T]) lacks(sh *shape) int {
	for i := range p.encoder.targets {
		if t := &p.encoder.targets[i]; t.NotNull && !t.HasDefault && !sh.has(i) {
			return i
		}
	}
	return -1
}

// update writes rows that must be there already.
func (p *upsertPlan[T]) update(ctx context.Context, tx pgx.Tx, sh *shape, column int, batch []schema.Message[T]) error {
	places, err := placesOf(ctx, tx, updateSQL(p.table, sh.targets, p.versionName()), sh.args())
	if err != nil {
		return err
	}
	lost := left(len(sh.places), places)
	if len(lost) == 0 {
		return nil
	}
	if p.version >= 0 {
		none, err := rowless(ctx, tx, p.table, sh, lost)
		if err != nil {
			return err
		}
		if len(none) < len(lost) {
			return errRaced
		}
	}
	c := &p.encoder.columns[column]
	var faults schema.Faults
	for _, n := range lost {
		f := absent(batch[sh.places[n-1]].Record, c.Field, c.Name, "missing, there is no row of the key")
		f.Dependent = true // another message may have deleted it
		faults = append(faults, f)
	}
	return faults.AsError()
}

// left returns the numbers from 1 to n that are not among those found.
func left(n int, found []int64) (rest []int64) {
	is := make([]bool, n)
	for _, i := range found {
		is[i-1] = true
	}
	for i := range is {
		if !is[i] {
			rest = append(rest, int64(i+1))
		}
	}
	return rest
}
