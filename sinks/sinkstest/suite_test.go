package sinkstest

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

func TestMain(m *testing.M) { tablestest.Main(m) }

// counter is the suite of a sink that counts messages in four rows.
func counter(sink func() sinks.Sink[int]) Suite[int] {
	return Suite[int]{
		New:     sink,
		Setup:   `create table counter (k int primary key, n int not null, last int not null)`,
		Effects: `select * from counter order by k`,
		Message: func(i int) schema.Message[int] {
			return schema.Message[int]{Record: &schema.Record{Topic: "t", Offset: int64(i), Value: []byte("x")}, Body: i}
		},
		Bad: func(i int) schema.Message[int] {
			return schema.Message[int]{Record: &schema.Record{Topic: "t", Offset: int64(i), Value: []byte("x")}, Body: -1}
		},
		PerMessage: true,
	}
}

const count = `insert into counter values ($1, 1, $2) on conflict (k) do update set n = counter.n + 1, last = excluded.last`

var errBad = errors.New("bad")

// good counts as it should.
func good(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
	for _, m := range batch {
		if m.Body < 0 {
			return &schema.Fault{Record: m.Record, Reason: schema.ReasonHandler, Err: errBad}
		}
		if _, err := tx.Exec(ctx, count, m.Body%4, m.Body); err != nil {
			return err
		}
	}
	return nil
}

// sabotaged is a sink that may break its promises in each call.
type sabotaged struct {
	apply   func(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error
	prepare func(ctx context.Context, conn *pgx.Conn) error
}

func (s *sabotaged) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
	return s.apply(ctx, tx, batch)
}

func (s *sabotaged) Prepare(ctx context.Context, conn *pgx.Conn) error {
	if s.prepare == nil {
		return nil
	}
	return s.prepare(ctx, conn)
}

// Proves that a good sink passes.
func TestGoodSink(t *testing.T) {
	Run(t, counter(func() sinks.Sink[int] { return &sabotaged{apply: good} }))
}

// Proves that each test fails for a sink that breaks what the test is for: a
// test that never failed proves nothing.
func TestSabotage(t *testing.T) {
	for _, c := range checks[int]() {
		t.Run(c.name, func(t *testing.T) {
			broken, ok := sabotage()[c.name]
			if !ok {
				t.Fatal("nothing shows that this test can fail")
			}
			suite := counter(broken)
			if c.name == "twice is once" {
				suite.Idempotent = true // which it is not
			}
			if c.name == "statements do not grow with the batch" {
				suite.PerMessage = false
			}
			suite.AllFaults = c.name == "all bad messages are named at once"
			err := suite.run(t, c)
			if err == nil {
				t.Fatal("the broken sink passed")
			}
			t.Log(err)
		})
	}
}

// sabotage returns the broken sink for each test.
func sabotage() map[string]func() sinks.Sink[int] {
	broken := func(apply func(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error) func() sinks.Sink[int] {
		return func() sinks.Sink[int] { return &sabotaged{apply: apply} }
	}
	swallow := func(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
		_ = good(ctx, tx, batch)
		return nil
	}
	return map[string]func() sinks.Sink[int]{
		"twice is once": broken(good),
		"rollback leaves nothing": broken(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
			return errors.Join(good(ctx, tx, batch), onOwn(ctx, tx, count, 99, 0))
		}),
		"a batch can be applied again":        forgetful,
		"batches may be cut anywhere":         broken(firstOnly),
		"an aborted transaction fails closed": broken(swallow),
		"an ended transaction fails closed":   broken(aroundTheTx),
		"a lost connection fails closed":      broken(swallow),
		"no statement outside of the transaction": broken(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
			return errors.Join(good(ctx, tx, batch), onOwn(ctx, tx, `select $1::int`, 1))
		}),
		"no statement for no message": broken(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
			_, err := tx.Exec(ctx, `select $1::int`, 1)
			return errors.Join(err, good(ctx, tx, batch))
		}),
		"statements do not grow with the batch": broken(good),
		"a bad message is named": broken(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
			if err := good(ctx, tx, batch); err != nil {
				return errors.New("some message: " + err.Error())
			}
			return nil
		}),
		"all bad messages are named at once":       broken(good), // which stops at the first
		"a report has an outcome for each message": func() sinks.Sink[int] { return talker{} },
		"workers do not meet":                      growing,
		"prepare at any time":                      onceOnly,
	}
}

// talker reports of one message, whatever the batch.
type talker struct{}

func (talker) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
	return good(ctx, tx, batch)
}

func (talker) ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) ([]schema.Outcome, error) {
	return make([]schema.Outcome, 1), good(ctx, tx, batch)
}

// onOwn runs a statement on a connection of its own.
func onOwn(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	conn, err := pgx.ConnectConfig(ctx, tx.Conn().Config()) // with the tracer, as of the same pool
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql, args...)
	return errors.Join(err, conn.Close(ctx))
}

// forgetful remembers what it has applied, and does not do it again.
func forgetful() sinks.Sink[int] {
	seen := map[int64]bool{}
	return &sabotaged{apply: func(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
		for i := range batch {
			if !seen[batch[i].Offset] {
				if err := good(ctx, tx, batch[i:i+1]); err != nil {
					return err
				}
			}
			seen[batch[i].Offset] = true
		}
		return nil
	}}
}

// firstOnly applies the first message of each row in a batch.
func firstOnly(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
	return good(ctx, tx, batch[:min(4, len(batch))])
}

// aroundTheTx uses the transaction's connection and not the transaction.
func aroundTheTx(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
	for _, m := range batch {
		if _, err := tx.Conn().Exec(ctx, count, m.Body%4, m.Body); err != nil {
			return err
		}
	}
	return nil
}

// growing counts the batches it was ever given, and writes that down.
func growing() sinks.Sink[int] {
	batches := make(chan int, 1) // holds the count; whoever has it may count
	batches <- 0
	return &sabotaged{apply: func(ctx context.Context, tx pgx.Tx, batch []schema.Message[int]) error {
		n := <-batches + 1
		batches <- n
		_, err := tx.Exec(ctx, count, batch[0].Body%4, n)
		return err
	}}
}

// onceOnly refuses to be prepared a second time.
func onceOnly() sinks.Sink[int] {
	prepared := false
	return &sabotaged{apply: good, prepare: func(context.Context, *pgx.Conn) error {
		if prepared {
			return errBad
		}
		prepared = true
		return nil
	}}
}
