package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/term"

	"github.com/oncestream/oncestream/offsets"
)

// errRefused ends a change that makes no sense; what is wrong has been told.
var errRefused = errors.New("nothing was changed")

// changeOffsets prints what a change would do, asks, and does it.
func (a *app) changeOffsets(ctx context.Context, c *config, action offsets.Action, t target, f *changeFlags) error {
	return withStanding(ctx, c, func(s *standing) error {
		if s.gone != nil {
			return s.gone
		}
		if err := s.ledger.CheckEnvironment(ctx, s.conn, c.engine.Environment); err != nil {
			return err
		}
		if err := t.ask(ctx, s); err != nil {
			return err
		}
		changes, left, err := s.changes(action, t, f)
		if err != nil {
			return err
		}
		for _, line := range left {
			fmt.Fprintln(a.stdout, line)
		}
		if len(changes) == 0 {
			return fmt.Errorf("%w: there is no partition to %s", errRefused, action)
		}
		plan, err := s.ledger.Plan(ctx, s.conn, changes)
		if err != nil {
			return err
		}
		if err := writePlan(a.stdout, s, plan); err != nil {
			return err
		}
		if ok, err := a.agreed(f); !ok {
			return err
		}
		return a.applyChanges(ctx, c, s, changes, f)
	})
}

func (a *app) applyChanges(ctx context.Context, c *config, s *standing, changes []offsets.Change, f *changeFlags) error {
	done, err := s.ledger.Apply(ctx, s.conn, changes, f.note(), c.engine.Postgres.TransactionTimeout)
	server, answered := errors.AsType[*pgconn.PgError](err)
	_, refused := errors.AsType[*offsets.RefusedChange](err)
	switch {
	case answered && server.Code == "55P03": // lock_not_available
		return errors.Join(err, s.holders(ctx, changes))
	case err != nil && !answered && !refused:
		return fmt.Errorf("%w\nwhether it was done shows: oncestream offsets show %s --history 1", err, c.file)
	case err != nil:
		return err
	}
	for _, p := range done {
		fmt.Fprintf(a.stdout, "partition %d goes on at offset %d, epoch %d\n", p.Partition, p.To, p.Epoch)
	}
	return nil
}

// holders says whose transactions stand in the way.
func (s *standing) holders(ctx context.Context, changes []offsets.Change) error {
	var all []error
	for _, c := range changes {
		if h, found, err := s.ledger.Holder(ctx, s.conn, c.Partition); err == nil && found {
			all = append(all, fmt.Errorf("partition %d is held by backend %d of the database (%s, %s for %s); nothing was changed",
				c.Partition, h.PID, h.Application, h.State, ageText(h.Since)))
		}
	}
	return errors.Join(all...)
}

// writePlan prints what is to be done, and fails where it makes no sense.
func writePlan(out io.Writer, s *standing, plan []offsets.Planned) error {
	if plan[0].Action == offsets.Adopt {
		fmt.Fprintf(out, "adopt %s, which is there now\n", s.identity())
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTITION\tACTION\tFROM\tTO\tREAD AGAIN\tLEFT OUT\tKEYS PURGED TO\tLOG\tSTATE")
	var refusals []error
	for _, p := range plan {
		r, _, _, _ := s.partition(p.Partition)
		floor, state := "-", p.State
		if p.Floor >= 0 {
			floor = strconv.FormatInt(p.Floor, 10)
		}
		if p.Reason != "" {
			state += ": " + p.Reason
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t%d\t%s\t%d to %d\t%s\n", p.Partition, p.Action, p.Next, p.To, p.Again, p.LeftOut, floor, r.Start, r.End, orDash(state))
		if p.Refusal != nil {
			refusals = append(refusals, p.Refusal)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(refusals) > 0 {
		return errors.Join(append(refusals, errRefused)...)
	}
	return nil
}

// agreed reports whether the change is to be done: --yes says so, or a person
// who is asked.
func (a *app) agreed(f *changeFlags) (bool, error) {
	switch {
	case f.dryRun:
		fmt.Fprintln(a.stdout, "a dry run: nothing was changed")
		return false, nil
	case f.yes:
		return true, nil
	case !a.canAsk():
		return false, usagef("there is nobody to ask: say --yes to do it, or --dry-run to look only")
	}
	fmt.Fprint(a.stderr, "do it? [y/N] ")
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	return false, errRefused
}

// canAsk reports whether a person is there to answer.
func (a *app) canAsk() bool {
	f, ok := a.stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// labelled is a ledger and its label.
type labelled struct {
	conn   *pgx.Conn
	ledger *offsets.Ledger
	label  string
}

func withStoredLabel(ctx context.Context, c *config, do func(labelled) error) error {
	return withLedger(ctx, c, func(conn *pgx.Conn, ledger *offsets.Ledger) error {
		label, err := ledger.Environment(ctx, conn)
		if err != nil {
			return err
		}
		return do(labelled{conn, ledger, label})
	})
}
