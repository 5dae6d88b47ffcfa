package processor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
)

// payment is what the pipelines of these tests read: "id account cents".
type payment struct {
	id, account string
	cents       int64
}

func decodePayment(_ context.Context, r *schema.Record) (p payment, err error) {
	_, err = fmt.Sscan(string(r.Value), &p.id, &p.account, &p.cents)
	return p, err
}

// paymentTables hold each payment, and the sum and number of an account's.
const paymentTables = `
create table payment (id text primary key, account text not null, cents bigint not null check (cents > 0));
create table balance (account text primary key, cents bigint not null, payments bigint not null)`

// paymentSink is right: an insert and a sum.
type paymentSink struct{}

func (paymentSink) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[payment]) error {
	for _, m := range batch {
		if _, err := tx.Exec(ctx, "insert into payment values ($1, $2, $3)", m.Body.id, m.Body.account, m.Body.cents); err != nil {
			return err
		}
	}
	return addToBalances(ctx, tx, batch)
}

func addToBalances(ctx context.Context, tx pgx.Tx, batch []schema.Message[payment]) error {
	for _, m := range batch {
		_, err := tx.Exec(ctx, `insert into balance values ($1, $2, 1)
			on conflict (account) do update set cents = balance.cents + excluded.cents, payments = balance.payments + 1`, m.Body.account, m.Body.cents)
		if err != nil {
			return err
		}
	}
	return nil
}

func payments(sink processor.Sink[payment]) processor.Pipeline[payment] {
	return processor.Pipeline[payment]{
		Decode: decodePayment, Sink: sink,
		Key: schema.ByValue(func(m schema.Message[payment]) string { return m.Body.id }),
	}
}

// paymentSinkFunc is a sink of a function.
type paymentSinkFunc func(ctx context.Context, tx pgx.Tx, batch []schema.Message[payment]) error

func (f paymentSinkFunc) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[payment]) error {
	return f(ctx, tx, batch)
}

// newVerifyWorld is a world with payments in two partitions: of each tenth
// payment a repeat, and one that the table refuses.
func newVerifyWorld(t *testing.T) *world {
	w := newWorld(t, 2)
	w.db.Exec(paymentTables)
	for p := range int32(2) {
		var values []string
		for i := range 20 {
			values = append(values, fmt.Sprintf("p%d-%d account%d %d", p, i, i%7, i+1))
			if i%10 == 0 {
				values = append(values, values[len(values)-1])
			}
		}
		values = append(values, fmt.Sprintf("p%d-bad account1 0", p), "no payment")
		w.produce(p, processortest.Values(values...)...)
	}
	return w
}

// verify runs a verification, and checks that it leaves nothing behind and has
// not touched what is live.
func (w *world) verify(p *processor.Processor, o processor.VerifyOptions) processor.Verdict {
	w.tb.Helper()
	verdict, err := w.tryVerify(p, o)
	must(w.tb, err)
	for _, proof := range verdict.Proofs {
		w.tb.Logf("%s: %s\n\t%s", proof.Name, proof.Outcome, strings.Join(proof.Details, "\n\t"))
	}
	w.tb.Log(verdict)
	return verdict
}

func (w *world) tryVerify(p *processor.Processor, o processor.VerifyOptions) (processor.Verdict, error) {
	w.tb.Helper()
	const live = `select (select count(*) from payment), (select count(*) from balance), (select count(*) from appended),
		(select count(*) from consumer_offset), (select count(*) from processed_message)`
	before := w.db.Dump(live)
	verdict, err := p.Verify(context.Background(), processor.Range{}, o)
	if after := w.db.Dump(live); after != before {
		w.tb.Errorf("the live tables were\n%sand are\n%s", before, after)
	}
	if _, ok := w.GroupOffset(w.tb, w.group, w.topic, 0); ok {
		w.tb.Error("the group has an offset in Kafka")
	}
	if left := w.db.Value(`select count(*) from pg_namespace where nspname like 'oncestream\_verify\_%'`); left != "0" {
		w.tb.Errorf("%s scratch schemas are left", left)
	}
	return verdict, err
}

// quiet is the world's configuration without the lines of each run.
func (w *world) quiet() processor.Config {
	cfg := w.config()
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// Proves that a pipeline which is right is proven, with every point of its
// transactions cut, duplicates and dead letters among the records; and that its
// tables, its ledger and its group are not touched.
func TestVerifyProven(t *testing.T) {
	w := newVerifyWorld(t)
	verdict := w.verify(newProcessor(t, w.quiet(), payments(paymentSink{})), processor.VerifyOptions{Order: true})
	if verdict.Outcome != processor.Proven {
		t.Error("not proven")
	}
	if got := fmt.Sprint(verdict.Records, verdict.Effects, verdict.Duplicates, verdict.DeadLetters); got != "48 40 4 4" {
		t.Errorf("records, effects, duplicates, dead letters: %s", got)
	}
	cuts := verdict.Cuts
	if cuts.Points < 4*8 || cuts.Batches < 3 || cuts.Commits.Before != cuts.Batches || cuts.Commits.Inside != cuts.Batches ||
		cuts.Commits.Sent == 0 || cuts.Commits.Answered == 0 {
		t.Errorf("cut %+v", cuts)
	}
}

// Proves that a partition which halts ends the verification, with the place and
// what to do.
func TestVerifyHalts(t *testing.T) {
	w := newVerifyWorld(t)
	cfg := w.quiet()
	cfg.Policy.OnError = processor.HaltPartition
	_, err := w.tryVerify(newProcessor(t, cfg, payments(paymentSink{})), processor.VerifyOptions{})
	if !errors.Is(err, processor.ErrHalted) || !strings.Contains(err.Error(), "TestVerifyHalts/0, before offset 22") || !strings.Contains(err.Error(), "(--to)") {
		t.Errorf("got %v", err)
	}
}
