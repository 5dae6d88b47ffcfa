package offsets_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// What waits for a decision is counted apart from the account: a dead letter that
// is discarded stays in the account, and is open no more. Those of another
// partition, topic or group are not counted.
func TestProgressOpenDeadLetters(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	elsewhere := offsets.New(offsets.Options{Schema: db.Schema, Group: "other", Topic: "orders"})
	for _, l := range []*offsets.Ledger{ledger, elsewhere} {
		if err := l.Register(t.Context(), db.Pool); err != nil {
			t.Fatal(err)
		}
		passAside(t, db, l, 4)
	}
	db.Exec(`update dead_letter set state = 'discarded', resolved_at = now(), resolution = 'a test' where record_offset = 1 and consumer_group = 'shop'`)
	all, err := ledger.Progress(t.Context(), db.Pool)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	if p := all[0]; p.DeadLetters != 4 || p.OpenDeadLetters != 3 || p.Applied() != 0 || p.Gaps() != 0 {
		t.Errorf("got %+v", p)
	}
	if p := all[1]; p.DeadLetters != 0 || p.OpenDeadLetters != 0 {
		t.Errorf("got %+v", p)
	}
}

// passAside passes n records of partition 0, each as a dead letter, and claims
// partition 1.
func passAside(t *testing.T, db *tablestest.DB, l *offsets.Ledger, n int64) {
	t.Helper()
	claims, _, err := l.Claim(t.Context(), db.Pool, "A", offsets.Identity{}, []offsets.Assigned{{Partition: 0}, {Partition: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var letters []offsets.DeadLetter
	for o := range n {
		letters = append(letters, offsets.DeadLetter{Record: &schema.Record{Topic: "orders", Offset: o}, Reason: "decode", Detail: "a test"})
	}
	err = pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		c, err := l.Advance(t.Context(), tx, claims[0], offsets.Position{Next: n, LeaderEpoch: -1, Records: n})
		if err != nil {
			return err
		}
		if err := l.SetAside(t.Context(), tx, letters); err != nil {
			return err
		}
		return l.Account(t.Context(), tx, c, offsets.Counts{DeadLetters: n})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Of first starts that name different environments, all at once, one decides, and
// exactly those that named another are refused.
func TestEnvironmentAtOnce(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	const starts = 8
	var refused [starts]error
	var g errgroup.Group
	for i := range starts {
		g.Go(func() error {
			err := ledger.EnterEnvironment(t.Context(), db.Pool, fmt.Sprint("env", i%4), "A")
			if _, ok := errors.AsType[*offsets.OtherEnvironment](err); ok {
				refused[i], err = err, nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	label, err := ledger.Environment(t.Context(), db.Pool)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range refused {
		if mine := fmt.Sprint("env", i%4) == label; mine != (err == nil) {
			t.Errorf("the ledger is of %s, and the start of env%d got %v", label, i%4, err)
		}
	}
	if n := db.Value("select count(*) from environment_change"); n != "1" {
		t.Errorf("%s labels are written down", n)
	}
}

// A refusal is found by its type, with the change that was refused, in Plan and
// through what Apply wraps around it.
func TestRefusedChange(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	c := offsets.Change{Partition: 3, Action: offsets.Rewind, To: 5}
	plan, err := ledger.Plan(t.Context(), db.Pool, []offsets.Change{c})
	if err != nil {
		t.Fatal(err)
	}
	_, err = ledger.Apply(t.Context(), db.Pool, []offsets.Change{c}, offsets.Note{By: "ada", Reason: "a test"}, 0)
	for what, err := range map[string]error{"plan": plan[0].Refusal, "apply": err} {
		if refused, ok := errors.AsType[*offsets.RefusedChange](err); !ok || refused.Change != c || refused.Topic != "orders" {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for _, bad := range []offsets.Change{{Action: "forward"}, {Action: offsets.Skip, To: -1}, {Action: offsets.Adopt, To: 1}} {
		if _, err := ledger.Plan(t.Context(), db.Pool, []offsets.Change{bad}); err == nil {
			t.Errorf("%+v was planned", bad)
		}
	}
}
