package offsets_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/datadriven"
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
	}
	batch := map[string]func(context.Context, arguments) func() string{
		"begin": w.begin, "advance": w.advance, "admit": w.admit, "batch": w.advanceAndAdmit,
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

func (w *worker) advanceAndAdmit(ctx context.Context, a arguments) func() string {
	c, admissions, err := w.ledger.AdvanceAndAdmit(ctx, w.tx, w.held[a.partition()], a.position(), a.entries())
	if err != nil {
		return answer(err, "")
	}
	return func() string { return w.movedTo(c, nil)() + w.admitted(a.entries(), admissions, nil)() }
}

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

// answer shows a result, or the error.
func answer(err error, format string, args ...any) func() string {
	return func() string {
		switch {
		case errors.Is(err, offsets.ErrFenced):
			return "fenced: " + err.Error() + "\n"
		case errors.Is(err, offsets.ErrWentBack):
			return "went back: " + err.Error() + "\n"
		case err != nil:
			return "error: " + err.Error() + "\n"
		}
		return fmt.Sprintf(format, args...)
	}
}

func showClaim(c offsets.Claim) string {
	return fmt.Sprintf("partition %d: epoch %d, next %d\n", c.Partition, c.Epoch, c.Next)
}

func showAdmission(e offsets.Entry, a offsets.Admission) string {
	at := fmt.Sprintf("%d@%d %s: ", e.Partition, e.Offset, keyName(e.Key))
	first := fmt.Sprintf("%d@%d, seen before %t, result %q\n", a.First.Partition, a.First.Offset, !a.ProcessedAt.IsZero(), a.Result)
	switch a.Outcome {
	case offsets.Fresh:
		return at + "fresh\n"
	case offsets.Conflict:
		return at + "conflict with " + first
	default:
		return at + "duplicate by " + string(a.Cause) + " of " + first
	}
}

// arguments are a command's: the verb, bare numbers (partitions), name=value
// pairs, and entries as lines of input.
type arguments struct {
	t *testing.T
	d *datadriven.TestData
}

func (a arguments) verb() string { return a.d.CmdArgs[0].Key }

func (a arguments) has(name string) bool { return a.d.HasArg(name) }

func (a arguments) text(name, unset string) string {
	a.d.MaybeScanArgs(a.t, name, &unset)
	return unset
}

func (a arguments) number(name string, unset int64) int64 {
	a.d.MaybeScanArgs(a.t, name, &unset)
	return unset
}

// identity is the topic as the worker sees it: cluster "c" and topic id 1.
func (a arguments) identity() offsets.Identity {
	return offsets.Identity{ClusterID: a.text("cluster", "c"), TopicID: [16]byte{15: byte(a.number("topic_id", 1))}}
}

// assigned is the partitions, 0 or 0=100 with a start.
func (a arguments) assigned() []offsets.Assigned {
	var all []offsets.Assigned
	for _, arg := range a.d.CmdArgs[1:] {
		p, err := strconv.ParseInt(arg.Key, 10, 32)
		if err != nil {
			continue
		}
		start := int64(0)
		if len(arg.Vals) == 1 {
			arg.Scan(a.t, 0, &start)
		}
		all = append(all, offsets.Assigned{Partition: int32(p), Start: start})
	}
	return all
}

func (a arguments) partition() int32 {
	all := a.assigned()
	if len(all) != 1 {
		a.d.Fatalf(a.t, "%s needs one partition", a.verb())
	}
	return all[0].Partition
}

func (a arguments) position() offsets.Position {
	to := offsets.Position{
		Next: a.number("to", 0), LeaderEpoch: int32(a.number("leader", -1)), Records: a.number("records", int64(len(a.entries()))),
	}
	if a.has("time") {
		to.Time = time.UnixMilli(a.number("time", 0))
	}
	return to
}

// entries reads lines of the form "0@10 key payload".
func (a arguments) entries() []offsets.Entry {
	var all []offsets.Entry
	for line := range strings.Lines(a.d.Input) {
		var e offsets.Entry
		var key, payload string
		if _, err := fmt.Sscanf(line, "%d@%d %s %s", &e.Partition, &e.Offset, &key, &payload); err != nil {
			a.d.Fatalf(a.t, "%q: %v", line, err)
		}
		e.Key, e.PayloadSum = keyOf(key), int64(xxhash.Sum64String(payload))
		all = append(all, e)
	}
	return slices.Clip(all)
}
