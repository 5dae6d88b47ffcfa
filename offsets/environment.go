package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// OtherEnvironment says that the ledger is of another environment than the
// pipeline: one of the two is a clone of the other, or is not what it was taken
// for.
type OtherEnvironment struct {
	// Ledger and Pipeline are the labels; Pipeline is empty where it names none.
	Ledger, Pipeline string
}

// Code is "other_environment".
func (*OtherEnvironment) Code() string { return "other_environment" }

// Error names both labels and the one command.
func (e *OtherEnvironment) Error() string {
	says, label := fmt.Sprintf("the pipeline says %q", e.Pipeline), e.Pipeline
	if e.Pipeline == "" {
		says, label = "the pipeline names none", "LABEL"
	}
	remedy := fmt.Sprintf(`if this database is meant: oncestream offsets adopt FILE --environment %s --reason "…"`, label)
	if e.Pipeline == "" {
		remedy = fmt.Sprintf("if this database is meant, name it in the pipeline (environment: %s); if it is a clone, give the clone a label of its own: "+
			`oncestream offsets adopt FILE --environment LABEL --reason "…"`, e.Ledger)
	}
	return fmt.Sprintf("%s: the ledger is of environment %q, and %s: nothing was read or written; %s", e.Code(), e.Ledger, says, remedy)
}

const sqlEnvironment = `select label from $environment`

// Environment returns the ledger's label, empty where it has none.
func (l *Ledger) Environment(ctx context.Context, db DB) (string, error) {
	var label string
	err := db.QueryRow(ctx, l.sql.environment).Scan(&label)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return label, wrap("read the environment", err)
}

// CheckEnvironment is nil where the ledger has no label, or this one; else the
// error is an [*OtherEnvironment].
func (l *Ledger) CheckEnvironment(ctx context.Context, db DB, label string) error {
	stored, err := l.Environment(ctx, db)
	if err == nil && stored != "" && stored != label {
		err = wrap("check the environment", &OtherEnvironment{Ledger: stored, Pipeline: label})
	}
	return err
}

// sqlLabel gives the ledger a label if it has none: of two that try, one does.
const sqlLabel = `
with labelled as (
  insert into $environment (label) values ($1) on conflict do nothing returning label
)
insert into $environment_change (new_label, reason, changed_by)
select label, $2, $3 from labelled`

// EnterEnvironment is CheckEnvironment for a start: the first one that names a
// label gives it to the ledger. by is who starts.
func (l *Ledger) EnterEnvironment(ctx context.Context, db DB, label, by string) error {
	if label != "" {
		if _, err := db.Exec(ctx, l.sql.label, label, "the first start that named an environment", storable(by)); err != nil {
			return wrap("label the environment "+label, err)
		}
	}
	return l.CheckEnvironment(ctx, db, label)
}

const (
	sqlRelabel = `
insert into $environment as e (label) values ($1)
on conflict (only_one) do update set label = excluded.label where e.label <> excluded.label`

	sqlEnvironmentLocked = sqlEnvironment + `
for update`

	sqlNoteLabel = `insert into $environment_change (old_label, new_label, reason, changed_by) values (nullif($1, ''), $2, $3, $4)`
)

// AdoptEnvironment gives the ledger another label, and answers with the one
// before, empty where there was none. Processes that run go on: the label is
// compared when one starts.
func (l *Ledger) AdoptEnvironment(ctx context.Context, db DB, label string, note Note) (before string, err error) {
	operation := "adopt the environment " + label
	if err := note.check(); err != nil {
		return "", wrap(operation, err)
	}
	if label == "" {
		return "", wrap(operation, errors.New("a label is required"))
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, l.sql.environmentLocked).Scan(&before)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		tag, err := tx.Exec(ctx, l.sql.relabel, label)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("the ledger is of environment %q already", label)
		}
		if err == nil {
			_, err = tx.Exec(ctx, l.sql.noteLabel, before, label, storable(note.Reason), storable(note.By))
		}
		return err
	})
	return before, wrap(operation, err)
}

// Relabelled is a change of the ledger's label as it was written down.
type Relabelled struct {
	ID int64
	// From and To are the labels before and after; From is empty for the first.
	From, To string
	Note
	// At is by the database's clock.
	At time.Time
}

const sqlLabels = `
select id, coalesce(old_label, ''), new_label, reason, changed_by, changed_at
from $environment_change
order by id desc
limit $1`

// EnvironmentChanges returns the last changes of the ledger's label, the newest
// first.
func (l *Ledger) EnvironmentChanges(ctx context.Context, db DB, limit int) ([]Relabelled, error) {
	rows, err := db.Query(ctx, l.sql.labels, limit)
	if err != nil {
		return nil, wrap("read the changes of the environment", err)
	}
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Relabelled, error) {
		var c Relabelled
		err := row.Scan(&c.ID, &c.From, &c.To, &c.Reason, &c.By, &c.At)
		return c, err
	})
	return changes, wrap("read the changes of the environment", err)
}
