package processor_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
)

// users is a table with a unique value that two rows can swap only by way of a
// third one.
const users = `create table users (id int primary key, email text unique not null);
insert into users values (1, 'a'), (2, 'b')`

// userSink gives users their emails: "1=a" is what user 1 has from then on.
var userSink = sinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
	for _, m := range batch {
		id, email, _ := strings.Cut(m.Body, "=")
		if _, err := tx.Exec(ctx, `insert into users values ($1::text::int, $2) on conflict (id) do update set email = excluded.email`, id, email); err != nil {
			return err
		}
	}
	return nil
})

// waits configures a world to wait for other partitions, and returns where each
// refusal that is waited for is told.
func waits(cfg *processor.Config, wait time.Duration) <-chan error {
	refusals := make(chan error, 1) // one is enough to know of; more are dropped
	cfg.Policy.ConstraintWait = wait
	cfg.Hooks.Retrying = func(_ string, err error, _ time.Duration) {
		select {
		case refusals <- err:
		default:
		}
	}
	return refusals
}

func (w *world) refused(refusals <-chan error) {
	w.tb.Helper()
	err := await(w.tb, refusals, "a message that its table refuses")
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.ConstraintName != "users_email_key" {
		w.tb.Errorf("what is waited for is %v", err)
	}
}

func (w *world) users(want string) {
	w.tb.Helper()
	if got := w.db.Value(`select string_agg(id || '=' || email, ' ' order by id) from users`); got != want {
		w.tb.Errorf("users: %s, want %s", got, want)
	}
}

// Proves that a message which a unique column refuses waits for the partition
// that gives the value free, which in turn waits for this one in the middle of
// its own batch: two rows swap their values over two partitions, and nothing is
// set aside (case C36).
func TestConstraintWaitResolves(t *testing.T) {
	w := newWorld(t, 2)
	w.db.Exec(users)
	cfg := w.config()
	refusals := waits(&cfg, patience)
	start(t, newProcessor(t, cfg, texts(userSink)))
	w.produce(1, processortest.Values("2=a")...) // 1 has it
	w.refused(refusals)
	w.produce(0, processortest.Values("3=c", "1=tmp", "1=b", "3=d")...) // 2 has b, until partition 1 has passed
	w.waitFor(`select sum(next_offset) from consumer_offset`, "5")
	w.users("1=b 2=a 3=d")
	if got := w.deadLetters(); got != "" {
		t.Errorf("dead letters: %s", got)
	}
	if got := w.account(); got != "records 5, producer duplicates 0, redelivered 0, offsets 5" {
		t.Error(got)
	}
}

// Proves that the wait ends: a value that its holder keeps makes a dead letter of
// the message in the middle of a batch, and those before and behind it have
// their effects in their order.
func TestConstraintWaitEnds(t *testing.T) {
	w := newWorld(t, 2)
	w.db.Exec(users)
	w.produce(0, processortest.Values("3=c", "1=b", "3=d")...)
	w.produce(1, processortest.Values("4=e")...)
	cfg := w.config()
	refusals := waits(&cfg, 100*time.Millisecond)
	toEnd(t, newProcessor(t, cfg, texts(userSink)))
	w.refused(refusals)
	w.users("1=a 2=b 3=d 4=e")
	if got := w.deadLetters(); got != "1 unique 23505 users_email_key" {
		t.Errorf("dead letters: %s", got)
	}
}

// Proves that a message which waits holds up its own partition alone, and that a
// stop meanwhile decides nothing about it: it is there for the next owner.
func TestConstraintWaitStops(t *testing.T) {
	w := newWorld(t, 2)
	w.db.Exec(users)
	w.produce(0, processortest.Values("1=b", "3=c")...)
	cfg := w.config()
	refusals := waits(&cfg, time.Hour)
	r := start(t, newProcessor(t, cfg, texts(userSink)))
	w.refused(refusals)
	w.produce(1, processortest.Values("4=d")...)
	w.waitFor(`select next_offset from consumer_offset where partition = 1`, "1")
	r.finish()
	w.users("1=a 2=b 4=d")
	if got := w.db.Value(`select next_offset || ' ' || (select count(*) from dead_letter) from consumer_offset where partition = 0`); got != "0 0" {
		t.Errorf("offset and dead letters after the stop: %s", got)
	}
	w.db.Exec(`update users set email = 'free' where id = 2`)
	toEnd(t, newProcessor(t, cfg, texts(userSink)))
	w.users("1=b 2=free 3=c 4=d")
}
