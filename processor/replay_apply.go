package processor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables"
)

// trial is what one transaction of a replay has found out. It is forgotten where
// the transaction is tried again.
type trial struct {
	admissions []offsets.Admission
	faults     []*schema.Fault
	// asked are the messages that the sink was asked about, and outcomes what it
	// has answered, where its constraint is the guard.
	asked    []int
	outcomes []schema.Outcome
	changes  map[tables.Name]tables.Activity
}

// persist tries a batch until it was not in the way of another transaction: a
// live worker may hold what it waits for, for longer than LockTimeout.
func (r *replay) persist(ctx context.Context, b *batch) error {
	pause := r.p.cfg.Retry.newBackOff()
	for attempt := 1; ; attempt++ {
		t := trial{changes: map[tables.Name]tables.Activity{}}
		err := r.transact(ctx, b, &t)
		switch {
		case err == nil:
			r.conclude(b, &t)
			return nil
		case !contended(err) || attempt >= r.p.cfg.Retry.Attempts:
			return err
		}
		if err := sleep(ctx, pause.NextBackOff()); err != nil {
			return err
		}
	}
}

// contended reports whether the server has ended a transaction for the sake of
// another: 40 (deadlock, serialization) and 55P03 (lock_not_available).
func contended(err error) bool {
	server, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(server.Code, "40") || server.Code == lockNotAvailable)
}

// conclude adds what a transaction has found out to the report.
func (r *replay) conclude(b *batch, t *trial) {
	if r.p.decoder.guardedBy() == GuardConstraint {
		r.accountAsked(b, t)
	} else {
		r.account(b, t.admissions)
	}
	for _, f := range t.faults {
		r.fault(f)
	}
	for name, a := range t.changes {
		r.changes[name] = a.Plus(r.changes[name])
	}
}

// transact is the batch transaction without its advance and with a rollback.
func (r *replay) transact(ctx context.Context, b *batch, t *trial) error {
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // nothing of this transaction is to stay
	if r.p.decoder.guardedBy() == GuardConstraint {
		return r.ask(ctx, tx, b, t)
	}
	if t.admissions, err = r.ledger.Admit(ctx, tx, b.entries); err != nil {
		return err
	}
	if err := r.tell(ctx, tx, b, t.admissions); err != nil {
		return err
	}
	fresh := r.judge(b, t.admissions)
	if len(fresh) == 0 {
		return nil
	}
	return r.apply(ctx, tx, b, fresh, t)
}

// ask has the sink tell which messages are new, where its constraint is the guard.
func (r *replay) ask(ctx context.Context, tx pgx.Tx, b *batch, t *trial) error {
	var asked []int
	for i, record := range b.records {
		if !r.setAside(record) && !r.skips(record) {
			asked = append(asked, i)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	before, err := tables.Activities(ctx, tx)
	if err != nil {
		return err
	}
	outcomes, err := b.messages.apply(ctx, ownedTx{tx}, b.pick(asked))
	switch {
	case err == nil:
		t.asked, t.outcomes = asked, outcomes
		return r.measure(ctx, tx, before, t)
	case classify(err) == ownFault:
		t.faults = append(t.faults, faultOf(err, nil))
		return nil
	}
	return err
}

// accountAsked counts what has become of a batch whose sink was asked.
func (r *replay) accountAsked(b *batch, t *trial) {
	for _, record := range b.records {
		if !r.known(record) {
			r.leftOut(record)
		}
	}
	for n, i := range t.asked {
		if key := b.entries[i].Key; (len(t.outcomes) == 0 || !t.outcomes[n].Duplicate) && !r.fresh[key] {
			r.fresh[key] = true
			r.fresher(b.records[i], b.messages.key(b.places[i]))
		} else {
			r.report.Duplicates++
		}
	}
}

// apply writes the effects of the messages. Where the database refuses some, they
// are found by halves.
func (r *replay) apply(ctx context.Context, tx pgx.Tx, b *batch, fresh []int, t *trial) error {
	before, err := tables.Activities(ctx, tx)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
		if _, err := b.messages.apply(ctx, ownedTx{savepoint}, b.pick(fresh)); err != nil {
			return err
		}
		// What is deferred is checked here, as COMMIT would, and for the next piece
		// deferred again.
		_, err := savepoint.Exec(ctx, allConstraints+"; set constraints all deferred")
		return err
	})
	switch {
	case err == nil:
		return r.measure(ctx, tx, before, t)
	case classify(err) != ownFault:
		return err
	case len(fresh) == 1:
		t.faults = append(t.faults, faultOf(err, b.records[fresh[0]]))
		return nil
	}
	half := len(fresh) / 2
	if err := r.apply(ctx, tx, b, fresh[:half], t); err != nil {
		return err
	}
	return r.apply(ctx, tx, b, fresh[half:], t)
}

// measure adds up what was written since. The ledger's own tables do not count.
func (r *replay) measure(ctx context.Context, tx pgx.Tx, before []tables.Activity, t *trial) error {
	after, err := tables.Activities(ctx, tx)
	if err != nil {
		return err
	}
	earlier := make(map[tables.Name]tables.Activity, len(before))
	for _, a := range before {
		earlier[a.Table] = a
	}
	ledger := tables.LedgerTables()
	for _, a := range after {
		if a.Table.Schema == r.p.cfg.Postgres.Schema && slices.Contains(ledger, a.Table.Table) {
			continue
		}
		if a = a.Since(earlier[a.Table]); !a.None() {
			t.changes[a.Table] = a.Plus(t.changes[a.Table])
		}
	}
	return nil
}

// changed lists the changes by table.
func (r *replay) changed() []tables.Activity {
	return slices.SortedFunc(maps.Values(r.changes), func(a, b tables.Activity) int {
		return strings.Compare(a.Table.String(), b.Table.String())
	})
}
