package processor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
)

// caught fails unless the proof is broken and says the text.
func caught(t *testing.T, v processor.Verdict, name processor.ProofName, text string) {
	t.Helper()
	p := v.Proof(name)
	if p.Outcome != processor.Broken || v.Outcome != processor.Broken {
		t.Errorf("%s is %s, the verdict %s", name, p.Outcome, v.Outcome)
	}
	if !strings.Contains(strings.Join(p.Details, "\n"), text) {
		t.Errorf("%s does not say %q", name, text)
	}
}

func proven(t *testing.T, v processor.Verdict, names ...processor.ProofName) {
	t.Helper()
	for _, name := range names {
		if p := v.Proof(name); p.Outcome != processor.Proven {
			t.Errorf("%s is %s", name, p.Outcome)
		}
	}
}

// newSmallVerifyWorld is a world with few payments in one partition.
func newSmallVerifyWorld(t *testing.T) *world {
	w := newWorld(t, 1)
	w.db.Exec(paymentTables)
	w.produce(0, processortest.Values("p1 a 1", "p2 b 2", "p3 a 3", "p4 b 4", "p5 c 5", "p6 a 6")...)
	return w
}

// Proves that an increment for every message, the duplicates too, is caught: it is
// made where the pipeline hears of a duplicate, with no key of its own.
func TestVerifyCatchesIncrementOfDuplicates(t *testing.T) {
	w := newSmallVerifyWorld(t)
	p := payments(paymentSinkFunc(addToBalances))
	p.OnDuplicate = func(ctx context.Context, tx pgx.Tx, m schema.Message[payment], _ processor.Duplicate) error {
		return addToBalances(ctx, tx, []schema.Message[payment]{m})
	}
	v := w.verify(newProcessor(t, w.quiet(), p), processor.VerifyOptions{Tables: []string{"balance"}})
	caught(t, v, processor.ProofAgain, "at the same positions: balance had 3 rows and has 3")
	caught(t, v, processor.ProofAgain, "balance: different account=a: cents is 20, not 10; payments is 6, not 3")
	caught(t, v, processor.ProofAgain, "what is written for a duplicate (OnDuplicate) is written each time")
	proven(t, v, processor.ProofResume, processor.ProofHiddenInput)
}

// markingSink marks keys by a connection of its own, before the transaction
// commits, and leaves out what is marked. It takes the settings of the connection
// that it is prepared on, so that the marks are in the scratch schema, too.
type markingSink struct{ conn *pgx.Conn }

func (s *markingSink) Prepare(ctx context.Context, conn *pgx.Conn) (err error) {
	s.close(ctx)
	cfg := conn.Config().Copy()
	cfg.AfterNetConnect = nil // it is not the engine's connection that is cut
	s.conn, err = pgx.ConnectConfig(ctx, cfg)
	return err
}

func (s *markingSink) close(ctx context.Context) {
	if s.conn != nil {
		_ = s.conn.Close(ctx)
	}
}

func (s *markingSink) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[payment]) error {
	var unmarked []schema.Message[payment]
	for _, m := range batch {
		tag, err := s.conn.Exec(ctx, "insert into mark values ($1) on conflict do nothing", m.Body.id)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 1 {
			unmarked = append(unmarked, m)
		}
	}
	return addToBalances(ctx, tx, unmarked)
}

// Proves that keys marked outside of the transaction are caught: after a cut the
// mark is there and the effect is not.
func TestVerifyCatchesMarksOutsideOfTheTransaction(t *testing.T) {
	w := newSmallVerifyWorld(t)
	w.db.Exec("create table mark (id text primary key)")
	sink := &markingSink{}
	defer sink.close(context.Background())
	v := w.verify(newProcessor(t, w.quiet(), payments(sink)), processor.VerifyOptions{Tables: []string{"mark", "balance"}})
	caught(t, v, processor.ProofResume, "a cut of the connection at each step: balance: ")
	caught(t, v, processor.ProofResume, "must be in the transaction that it is given")
	proven(t, v, processor.ProofAgain, processor.ProofHiddenInput)
}

// Proves that keys remembered in the memory of the process are caught: the second
// run of the same records has no effect.
func TestVerifyCatchesMarksInMemory(t *testing.T) {
	w := newSmallVerifyWorld(t)
	seen := map[string]bool{}
	sink := paymentSinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[payment]) error {
		var unseen []schema.Message[payment]
		for _, m := range batch {
			if !seen[m.Body.id] {
				unseen = append(unseen, m)
			}
			seen[m.Body.id] = true
		}
		return addToBalances(ctx, tx, unseen)
	})
	v := w.verify(newProcessor(t, w.quiet(), payments(sink)), processor.VerifyOptions{Tables: []string{"balance"}})
	caught(t, v, processor.ProofHiddenInput, "balance: 3 rows missing, 0 extra, 0 different, of 3")
	caught(t, v, processor.ProofHiddenInput, "something is remembered outside of the transaction")
}

// Proves that the clock, a sequence and chance are named by their columns, also in
// a primary key, by which no rows can be paired; and that the rest is proven.
func TestVerifyNamesHiddenInput(t *testing.T) {
	w := newSmallVerifyWorld(t)
	w.db.Exec(`create sequence receipt_number;
		create table receipt (number bigint primary key, id text not null, month text not null default to_char(now(), 'YYYY-MM'),
			token uuid not null default gen_random_uuid(), due date not null default current_date)`)
	sink := paymentSinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[payment]) error {
		for _, m := range batch {
			if _, err := tx.Exec(ctx, "insert into receipt (number, id) values (nextval('receipt_number'), $1)", m.Body.id); err != nil {
				return err
			}
		}
		return nil
	})
	v := w.verify(newProcessor(t, w.quiet(), payments(sink)), processor.VerifyOptions{})
	if got := strings.Join(v.Hidden, " "); got != "receipt.due receipt.month receipt.number receipt.token" {
		t.Errorf("hidden input: %s", got)
	}
	for _, text := range []string{
		"receipt.number: it takes the next number of a sequence", "receipt.due: it takes the time of the run",
		"receipt.month: it depends on the clock or on a sequence", "receipt.token: it is another one in each run",
	} {
		caught(t, v, processor.ProofHiddenInput, text)
	}
	proven(t, v, processor.ProofAgain, processor.ProofResume)
	if got := w.db.Value("select last_value || ' ' || is_called from receipt_number"); got != "1 false" {
		t.Errorf("the live sequence is at %s", got)
	}
}

// Proves that an upsert whose last writer wins is caught where the order of
// records of different record keys changes, and not otherwise.
func TestVerifyCatchesOrder(t *testing.T) {
	w := newSmallVerifyWorld(t)
	sink := paymentSinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[payment]) error {
		for _, m := range batch {
			_, err := tx.Exec(ctx, "insert into balance values ($1, $2, 0) on conflict (account) do update set cents = excluded.cents", m.Body.account, m.Body.cents)
			if err != nil {
				return err
			}
		}
		return nil
	})
	v := w.verify(newProcessor(t, w.quiet(), payments(sink)), processor.VerifyOptions{Order: true, Seed: 3})
	caught(t, v, processor.ProofOrder, "in another order: balance: different account=a: cents is ")
	proven(t, v, processor.ProofAgain, processor.ProofResume, processor.ProofHiddenInput)
}

// Proves that a sink that names a live table with its schema is refused before it
// has written anything, and that a verification that fails leaves nothing.
func TestVerifyRefusesOutside(t *testing.T) {
	w := newSmallVerifyWorld(t)
	live := pgx.Identifier{w.db.Schema, "payment"}.Sanitize()
	sink := paymentSinkFunc(func(ctx context.Context, tx pgx.Tx, _ []schema.Message[payment]) error {
		_, err := tx.Exec(ctx, "insert into "+live+" values ('x', 'y', 1)")
		return err
	})
	_, err := w.tryVerify(newProcessor(t, w.quiet(), payments(sink)), processor.VerifyOptions{})
	if err == nil || !strings.Contains(err.Error(), "the pipeline writes to "+live+", which is no copy; it was rolled back: name tables without their schema") {
		t.Errorf("got %v", err)
	}
}

// Proves that what hangs on the order of a map in Go is named, which two runs of
// the same records show.
func TestVerifyNamesMapOrder(t *testing.T) {
	w := newVerifyWorld(t)
	w.db.Exec("create table ranked (id text primary key, rank int not null)")
	sink := paymentSinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[payment]) error {
		byID := map[string]bool{}
		for _, m := range batch {
			byID[m.Body.id] = true
		}
		rank := 0
		for id := range byID {
			rank++
			if _, err := tx.Exec(ctx, "insert into ranked values ($1, $2)", id, rank); err != nil {
				return err
			}
		}
		return nil
	})
	v := w.verify(newProcessor(t, w.quiet(), payments(sink)), processor.VerifyOptions{Tables: []string{"ranked"}})
	caught(t, v, processor.ProofHiddenInput, "ranked.rank: it is another one in each run (random(), gen_random_uuid(), a clock, the order of a map in Go)")
	proven(t, v, processor.ProofAgain, processor.ProofResume)
}
