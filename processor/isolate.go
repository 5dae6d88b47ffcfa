package processor

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// A batch is tried without savepoints first. Where a message has a fault of its
// own and the error names it, the batch is tried again without it. Where the
// database refuses the batch and does not say why of which message, the batch is
// tried again in isolation: after the advance and the keys, the effects are
// written in halves, each under a savepoint, until the message stands alone.
// Nothing is committed in between, and the keys are admitted once.

// isolating writes the effects of the messages and sets aside those at fault.
func (a *attempt) isolating(ctx context.Context, tx pgx.Tx, numbers []int) error {
	err := a.under(ctx, tx, numbers)
	if err == nil || classify(err) != ownFault {
		return err
	}
	if faults := faultsOf(err); len(faults) > 0 {
		if err := a.reject(faults); err != nil {
			return err
		}
		rest := slices.DeleteFunc(slices.Clone(numbers), func(n int) bool { return blames(faults, a.records[n]) })
		if len(rest) == 0 || len(rest) == len(numbers) {
			return nil
		}
		return a.isolating(ctx, tx, rest)
	}
	if len(numbers) == 1 {
		return a.reject([]*schema.Fault{faultOf(err, a.records[numbers[0]])})
	}
	half := len(numbers) / 2
	if err := a.isolating(ctx, tx, numbers[:half]); err != nil {
		return err
	}
	return a.isolating(ctx, tx, numbers[half:])
}

// under writes the effects of the messages under a savepoint. Constraints that
// are deferred are checked before it ends: at COMMIT they would name no message.
func (a *attempt) under(ctx context.Context, tx pgx.Tx, numbers []int) error {
	return pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
		outcomes, err := a.messages.apply(ctx, ownedTx{savepoint}, a.pick(numbers))
		if err != nil {
			return err
		}
		if _, err := savepoint.Exec(ctx, "set constraints all immediate"); err != nil {
			return err
		}
		a.report(numbers, outcomes)
		return nil
	})
}

// reject sets messages aside within the transaction; their keys, which were
// admitted with the others, are forgotten. Where the message decides about later
// ones (a policy that parks or halts, a repeat of it in this batch that was taken
// for its duplicate), the transaction ends instead: it is tried again with the
// message known, so that the outcome does not depend on how batches are cut.
func (a *attempt) reject(faults []*schema.Fault) error {
	if a.policy.OnError != DeadLetter {
		return schema.Faults(faults)
	}
	for _, f := range faults {
		n := a.place(f.Record)
		if n < 0 || a.repeated(n) {
			return schema.Faults{f}
		}
		a.aside = append(a.aside, f)
		a.forgotten = append(a.forgotten, a.entries[n])
		a.counts.Fresh--
	}
	return nil
}

// repeated reports whether another message of the batch has the key of
// message n.
func (b *batch) repeated(n int) bool {
	for i := range b.entries {
		if i != n && b.entries[i].Key == b.entries[n].Key {
			return true
		}
	}
	return false
}

// faultsOf returns the faults within an error that name their records.
func faultsOf(err error) []*schema.Fault {
	if all, ok := errors.AsType[schema.Faults](err); ok {
		return all
	}
	if f, ok := errors.AsType[*schema.Fault](err); ok && f.Record != nil {
		return []*schema.Fault{f}
	}
	return nil
}

func blames(faults []*schema.Fault, r *schema.Record) bool {
	return slices.ContainsFunc(faults, func(f *schema.Fault) bool { return f.Record == r })
}

// mergeDead joins faults in the order of their records' offsets.
func mergeDead(a, b []*schema.Fault) []*schema.Fault {
	merged := slices.Concat(a, b)
	slices.SortStableFunc(merged, func(a, b *schema.Fault) int { return int(a.Record.Offset - b.Record.Offset) })
	return merged
}

// haltAt is a fault at which the partition halts whatever on_error says.
type haltAt struct{ *schema.Fault }

// Unwrap returns the fault itself.
func (h *haltAt) Unwrap() error { return h.Fault }

// letter is the dead letter of a fault.
func (p Policy) letter(f *schema.Fault) offsets.DeadLetter {
	d := offsets.DeadLetter{
		Record: f.Record, Reason: f.Reason, Detail: f.Error(), Column: f.Column,
		Parked:     p.OnError == Park && f.Reason != schema.ReasonKeyReuse,
		ByPosition: len(f.Record.Value) > p.MaxDeadLetterValue,
	}
	if server, ok := errors.AsType[*pgconn.PgError](f.Err); ok {
		d.SQLState, d.Constraint = server.Code, server.ConstraintName
	}
	return d
}
