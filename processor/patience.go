package processor

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/oncestream/oncestream/schema"
)

// A unique or a foreign key may refuse a message for the sake of a row that the
// transaction of another partition is about to change: two rows that swap a
// unique value by way of a third one, a child that comes before its parent. With
// Policy.ConstraintWait such a message is tried again for a while before it is
// refused. Meanwhile this partition must hold no lock that the other may wait
// for, and what comes before the message must be committed, since the other may
// wait for that itself.

// patience is how long one batch has waited for others, and how it will.
type patience struct {
	until time.Time // zero before the first wait
	pause *backoff.ExponentialBackOff
}

// early returns the first of the faults that another partition could undo, as
// long as the batch may wait for that.
func (t *transactor) early(b *batch, faults []*schema.Fault) *schema.Fault {
	if t.policy.ConstraintWait == 0 || b.waited {
		return nil
	}
	for _, f := range mergeDead(nil, faults) {
		if f.Reason == schema.ReasonUnique || f.Reason == schema.ReasonForeignKey {
			return f
		}
	}
	return nil
}

// wait passes what stands before the message at fault, pauses, and returns the
// rest of the batch, which does not wait again once the time is over.
func (w *worker) wait(intake, work context.Context, b *batch, f *schema.Fault, p *patience) (*batch, error) {
	if p.until.IsZero() {
		p.until = time.Now().Add(w.e.policy.ConstraintWait)
		p.pause = w.e.cfg.Retry.newBackOff()
	}
	rest := *b
	if n := b.place(f.Record); n > 0 {
		head, tail := b.split(n)
		if err := w.pass(intake, work, head); err != nil {
			return nil, err
		}
		rest = *tail
	}
	left := time.Until(p.until)
	if rest.waited = left <= 0; rest.waited {
		return &rest, nil
	}
	if err := w.e.pause(intake, w.log, "batch", f, min(p.pause.NextBackOff(), left)); err != nil {
		return nil, errStopped
	}
	return &rest, nil
}
