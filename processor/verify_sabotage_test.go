package processor_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema/tables"
)

// A verifier that has never failed proves nothing: with the keys forgotten, so
// that nothing is skipped the second time, "again" is broken.
func TestVerifySeesForgottenKeys(t *testing.T) {
	w := newSmallVerifyWorld(t)
	p := newProcessor(t, w.quiet(), payments(paymentSinkFunc(addToBalances)))
	v, err := p.VerifyForgetful(context.Background(), processor.Range{}, processor.VerifyOptions{Tables: []string{"balance"}})
	must(t, err)
	caught(t, v, processor.ProofAgain, "at the same positions: balance had 3 rows and has 3")
	caught(t, v, processor.ProofAgain, "balance: different account=a: cents is 20, not 10; payments is 6, not 3")
	caught(t, v, processor.ProofAgain, "at the same positions, 6 messages had an effect again")
	proven(t, v, processor.ProofResume, processor.ProofHiddenInput)
}

// rewriter replaces a text of the statements by one of the same length.
type rewriter struct {
	net.Conn
	from, to []byte
	replaced *atomic.Int64
}

func (r *rewriter) Write(b []byte) (int, error) {
	if n := bytes.Count(b, r.from); n > 0 {
		r.replaced.Add(int64(n))
		b = bytes.ReplaceAll(b, r.from, r.to)
	}
	return r.Conn.Write(b)
}

// Proves what a verification cannot see: without the compare of the offset in the
// advance all is proven nevertheless. What the compare is for takes a second
// owner of the same epoch, which only a failover brings about, and a verification
// is alone; package offsets has the sabotage that shows it.
func TestVerifyIsBlindToTheCompareOfTheOffset(t *testing.T) {
	w := newSmallVerifyWorld(t)
	cfg := w.quiet()
	var replaced atomic.Int64
	cfg.Postgres.Configure = func(c *pgxpool.Config) error {
		c.ConnConfig.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
			return &rewriter{Conn: conn, from: []byte("next_offset = $5"), to: []byte("$5::bigint >= 0 "), replaced: &replaced}, nil
		}
		return nil
	}
	v := w.verify(newProcessor(t, cfg, payments(paymentSink{})), processor.VerifyOptions{})
	proven(t, v, processor.ProofAgain, processor.ProofResume, processor.ProofHiddenInput)
	if replaced.Load() < 50 {
		t.Errorf("the compare was taken out of %d statements only", replaced.Load())
	}
}

// Proves that the schemas which a killed verification has left are dropped by the
// next one, and those of one that lives are not.
func TestVerifyDropsLeftovers(t *testing.T) {
	w := newSmallVerifyWorld(t)
	conn, err := w.db.Pool.Acquire(t.Context())
	must(t, err)
	defer conn.Release()
	const dead, alive = "oncestream_verify_aaaaaaaa_again", "oncestream_verify_bbbbbbbb_again"
	for _, name := range []string{dead, alive} {
		must(t, tables.CreateScratch(t.Context(), conn.Conn(), name))
		defer func() { must(t, tables.DropSchema(context.Background(), conn.Conn(), name)) }()
	}
	held, err := tables.TryHold(t.Context(), conn.Conn(), strings.TrimSuffix(alive, "_again"))
	must(t, err)
	dropped, err := newProcessor(t, w.quiet(), payments(paymentSink{})).CleanScratch(t.Context())
	must(t, err)
	if !held || strings.Join(dropped, " ") != dead {
		t.Errorf("held %v, dropped %q, want %q", held, dropped, dead)
	}
	if got := w.db.Value("select string_agg(nspname, ' ') from pg_namespace where nspname in ($1, $2)", dead, alive); got != alive {
		t.Errorf("left are %s", got)
	}
}

// Proves that a verification that is stopped in its midst leaves nothing behind.
func TestVerifyStopped(t *testing.T) {
	w := newSmallVerifyWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newProcessor(t, w.quiet(), payments(paymentSink{}))
	_, err := p.Verify(ctx, processor.Range{}, processor.VerifyOptions{Progress: func(done, _ int64) {
		if done > 10 {
			cancel()
		}
	}})
	if err == nil {
		t.Error("it was not stopped")
	}
	if left := w.db.Value(`select count(*) from pg_namespace where nspname like 'oncestream\_verify\_%'`); left != "0" {
		t.Errorf("%s scratch schemas are left", left)
	}
}

// Proves that a verification whose own connection the server ends fails, and drops
// what it has made by another one.
func TestVerifyLosesItsConnection(t *testing.T) {
	w := newSmallVerifyWorld(t)
	p := newProcessor(t, w.quiet(), payments(paymentSink{}))
	var ended atomic.Int64
	_, err := w.tryVerify(p, processor.VerifyOptions{Progress: func(int64, int64) {
		if ended.Load() == 0 {
			ended.Add(int64(len(w.db.Rows("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'oncestream ' || $1", w.group))))
		}
	}})
	if err == nil || ended.Load() != 1 {
		t.Errorf("got %v after %d sessions were ended", err, ended.Load())
	}
}

// Proves that a sample takes whole keys, that the range may be bounded, and that
// what makes no sense or cannot be verified is refused by name.
func TestVerifyRange(t *testing.T) {
	w := newVerifyWorld(t)
	p := newProcessor(t, w.quiet(), payments(paymentSink{}))
	v := w.verify(p, processor.VerifyOptions{Sample: 0.5, Records: 40, OncePerPosition: true})
	if v.Outcome != processor.Proven || v.Read != 40 || v.Records < 8 || v.Records > 32 || v.Partitions[0].From != 4 {
		t.Errorf("read %d, verified %d of %+v: %s", v.Read, v.Records, v.Partitions, v.Outcome)
	}
	for text, o := range map[string]processor.VerifyOptions{
		"Sample between 0 and 1 (got 10000, 268435456, 2)":                  {Sample: 2},
		`want table.column, without the table's schema (got "payment")`:     {Exclude: []string{"payment"}},
		`table "payment" has no column "cent" (--exclude payment.cent)`:     {Exclude: []string{"payment.cent"}},
		`no table "payments" is verified`:                                   {Exclude: []string{"payments.cents"}},
		"holds more than 100 bytes, which is how much is kept in memory":    {MaxBytes: 100},
		"none of 48 records has an effect (48 dead letters), so that nothi": {Tables: []string{"balance"}, WithRows: []string{"payment"}},
	} {
		if strings.HasPrefix(text, "none") {
			w.db.Exec("alter table payment add constraint nothing check (false) not valid")
		}
		_, err := w.tryVerify(p, o)
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: got %v, want %q", o, err, text)
		}
		w.db.Exec("alter table payment drop constraint if exists nothing")
	}
}
