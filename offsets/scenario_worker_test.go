package offsets_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
)

// worker is a member of the script. It has a session for its batch transaction
// and one for what it does besides, as a real one has.
type worker struct {
	name         string
	ledger       *offsets.Ledger
	batch, aside *session
	tx           pgx.Tx
	held         map[int32]offsets.Claim // as the worker believes
	moved        map[int32]offsets.Claim // what holds after COMMIT
	entries      []offsets.Entry         // of the open transaction
	admissions   []offsets.Admission
	holder       offsets.Holder
}

// operation returns what a command does and on which session. The operation runs
// in the background and touches nothing of the worker; what it returns does.
func (w *worker) operation(a arguments) (*session, func(context.Context) func() string) {
	aside := map[string]func(context.Context, arguments) func() string{
		"start": w.start, "started": w.started, "claim": w.claim, "reclaim": w.reclaim,
		"release": w.release, "halt": w.halt, "holder": w.lookForHolder, "terminate": w.terminate,
		"rewind": w.change, "skip": w.change, "adopt": w.change, "enter": w.enter, "check": w.check, "relabel": w.relabel,
	}
	batch := map[string]func(context.Context, arguments) func() string{
		"begin": w.begin, "advance": w.advance, "admit": w.admit, "batch": w.pass(w.advanceAndAdmit), "contested": w.pass(w.contested),
		"apply": w.apply, "account": w.account, "hold": w.hold, "commit": w.commit, "rollback": w.rollback,
	}
	if f := aside[a.verb()]; f != nil {
		return w.aside, func(ctx context.Context) func() string { return f(ctx, a) }
	}
	if f := batch[a.verb()]; f != nil {
		return w.batch, func(ctx context.Context) func() string { return f(ctx, a) }
	}
	return nil, nil
}

func (w *worker) start(ctx context.Context, a arguments) func() string {
	decided, err := w.ledger.Start(ctx, w.aside.conn, a.identity(), a.assigned())
	return answer(err, "decided: %t\n", decided)
}

func (w *worker) started(ctx context.Context, _ arguments) func() string {
	started, err := w.ledger.Started(ctx, w.aside.conn)
	return answer(err, "started: %t\n", started)
}

func (w *worker) claim(ctx context.Context, a arguments) func() string {
	if timeout := a.text("lock_timeout", ""); timeout != "" {
		if _, err := w.aside.conn.Exec(ctx, "set lock_timeout = '"+timeout+"'"); err != nil {
			return answer(err, "")
		}
	}
	claims, refusals, err := w.ledger.Claim(ctx, w.aside.conn, w.name, a.identity(), a.assigned())
	return func() string {
		var b strings.Builder
		for _, c := range claims {
			w.held[c.Partition] = c
			b.WriteString(showClaim(c))
		}
		for _, r := range refusals {
			fmt.Fprintf(&b, "%s: %s\n", r.Code(), r.Error())
		}
		return b.String() + answer(err, "")()
	}
}

func (w *worker) reclaim(ctx context.Context, a arguments) func() string {
	c, err := w.ledger.Reclaim(ctx, w.aside.conn, w.held[a.partition()])
	return func() string {
		if err != nil {
			return answer(err, "")()
		}
		w.held[c.Partition] = c
		return showClaim(c)
	}
}

func (w *worker) release(ctx context.Context, a arguments) func() string {
	var claims []offsets.Claim
	for _, p := range a.assigned() {
		claims = append(claims, w.held[p.Partition])
	}
	return answer(w.ledger.Release(ctx, w.aside.conn, claims), "ok\n")
}

func (w *worker) halt(ctx context.Context, a arguments) func() string {
	return answer(w.ledger.Halt(ctx, w.aside.conn, w.held[a.partition()], a.d.Input), "ok\n")
}

func (w *worker) lookForHolder(ctx context.Context, a arguments) func() string {
	h, found, err := w.ledger.Holder(ctx, w.aside.conn, a.partition())
	return func() string {
		if err != nil || !found {
			return answer(err, "nobody\n")()
		}
		w.holder = h
		return fmt.Sprintf("%s, %s, not for an hour: %t\n", h.Application, h.State, h.Since < time.Hour)
	}
}

func (w *worker) terminate(ctx context.Context, _ arguments) func() string {
	ended, err := w.ledger.Terminate(ctx, w.aside.conn, w.holder)
	return answer(err, "ended: %t\n", ended)
}

func (w *worker) begin(ctx context.Context, _ arguments) func() string {
	tx, err := w.batch.conn.Begin(ctx)
	return func() string {
		w.tx, w.entries, w.admissions = tx, nil, nil
		clear(w.moved)
		return answer(err, "ok\n")()
	}
}

func (w *worker) advance(ctx context.Context, a arguments) func() string {
	c, err := w.ledger.Advance(ctx, w.tx, w.held[a.partition()], a.position())
	return w.movedTo(c, err)
}

func (w *worker) admit(ctx context.Context, a arguments) func() string {
	admissions, err := w.ledger.Admit(ctx, w.tx, a.entries())
	return w.admitted(a.entries(), admissions, err)
}

// pass advances and admits in one way or the other.
func (w *worker) pass(way func() passFunc) func(context.Context, arguments) func() string {
	return func(ctx context.Context, a arguments) func() string {
		c, admissions, err := way()(ctx, w.tx, w.held[a.partition()], a.position(), a.entries())
		if err != nil {
			return answer(err, "")
		}
		return func() string { return w.movedTo(c, nil)() + w.admitted(a.entries(), admissions, nil)() }
	}
}

func (w *worker) advanceAndAdmit() passFunc { return w.ledger.AdvanceAndAdmit }
func (w *worker) contested() passFunc       { return w.ledger.AdvanceAndAdmitContested }

func (w *worker) movedTo(c offsets.Claim, err error) func() string {
	return func() string {
		if err != nil {
			return answer(err, "")()
		}
		w.moved[c.Partition] = c
		return showClaim(c)
	}
}

func (w *worker) admitted(entries []offsets.Entry, admissions []offsets.Admission, err error) func() string {
	return func() string {
		var b strings.Builder
		for i := range admissions {
			b.WriteString(showAdmission(entries[i], admissions[i]))
		}
		w.entries, w.admissions = append(w.entries, entries...), append(w.admissions, admissions...)
		return b.String() + answer(err, "")()
	}
}

// apply does the rest of a batch: the effects and the account.
func (w *worker) apply(ctx context.Context, _ arguments) func() string {
	err := writeEffects(ctx, w.tx, w.entries, w.admissions)
	for _, c := range w.moved {
		if err == nil {
			err = w.ledger.Account(ctx, w.tx, c, offsets.Count(w.admissions))
		}
	}
	return answer(err, "%+v\n", offsets.Count(w.admissions))
}

// account accounts for one duplicate.
func (w *worker) account(ctx context.Context, a arguments) func() string {
	return answer(w.ledger.Account(ctx, w.tx, w.held[a.partition()], offsets.Counts{Producer: 1}), "ok\n")
}

// hold makes every transaction wait that inserts into a table with a gate.
func (w *worker) hold(ctx context.Context, _ arguments) func() string {
	_, err := w.tx.Exec(ctx, "lock table gate in access exclusive mode")
	return answer(err, "ok\n")
}

// commit is answered, or "lost": the server commits and the worker never knows.
func (w *worker) commit(ctx context.Context, a arguments) func() string {
	err := w.tx.Commit(ctx)
	return func() string {
		if err == nil && a.has("lost") {
			return "no answer\n"
		}
		if err == nil {
			for p, c := range w.moved {
				w.held[p] = c
			}
		}
		if w.batch.conn.IsClosed() {
			return "the connection is gone\n"
		}
		return answer(err, "ok\n")()
	}
}

func (w *worker) rollback(ctx context.Context, a arguments) func() string {
	err := w.tx.Rollback(ctx)
	if a.has("lost") {
		return answer(err, "no answer\n")
	}
	return answer(err, "ok\n")
}
