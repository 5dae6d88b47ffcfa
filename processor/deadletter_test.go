package processor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
)

// deadLetters lists the dead letters: offset, reason, SQLSTATE, constraint.
func (w *world) deadLetters() string {
	w.tb.Helper()
	var all []string
	for _, row := range w.db.Rows(`select record_offset::text, reason, coalesce(sqlstate, '-'), coalesce(constraint_name, '-') from dead_letter d order by d.partition, d.record_offset`) {
		all = append(all, strings.Join(row, " "))
	}
	return strings.Join(all, "\n")
}

// Proves that a bad message hurts none of its neighbours, whichever way it is
// bad and however many there are: each good one is stored once, each bad one is
// a dead letter with its reason, in the transaction that passed it, and a
// second run changes nothing (cases E01, E06, D01, D05, I11).
func TestDeadLetters(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`alter table appended add constraint positive check (id not like 'check%');
create unique index one_unique on appended ((left(id, 6))) where id like 'unique%';
create table parent (id text primary key);
insert into parent values ('none');
alter table appended add parent text generated always as (case when id like 'orphan%' then id else 'none' end) stored
  constraint parents references parent deferrable initially deferred`)
	bad := map[int]string{
		5: "\xff", 17: "", 23: "check1", 24: "check2", 31: "unique1", 32: "unique2", 44: "orphan", 58: "a\x00b", 59: "panic", 99: "check3",
	}
	records := numbered("m", 100)
	for i, value := range bad {
		records[i].Value = []byte(value)
	}
	records[70].Value = nil
	records[71].Value = []byte("m70 but other")
	records[72].Value = []byte("m70")
	w.produce(0, records...)
	p := texts(sinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
		for _, m := range batch {
			if m.Body == "panic" {
				panic("as asked")
			}
		}
		return appendSink{}.Apply(ctx, tx, batch)
	}))
	p.Key = schema.ByValue(func(m schema.Message[string]) string { return strings.TrimSuffix(m.Body, " but other") })
	toEnd(t, newProcessor(t, w.config(), p))
	want := `5 decode - -
17 key_missing - -
23 check 23514 positive
24 check 23514 positive
32 unique 23505 one_unique
44 foreign_key 23503 parents
58 value_range 22021 -
59 handler - -
70 tombstone - -
72 key_reuse - -
99 check 23514 positive`
	if got := w.deadLetters(); got != want {
		t.Errorf("dead letters:\n%s\nwant:\n%s", got, want)
	}
	w.effects(89)
	toEnd(t, newProcessor(t, w.config(), p))
	w.effects(89)
	if got := w.db.Value(`select records || ' ' || dead_letters || ' ' || duplicates_producer || ' ' || next_offset from consumer_offset`); got != "100 11 0 100" {
		t.Errorf("records, dead letters, duplicates, offset: %s", got)
	}
	if r := replayed(t, newProcessor(t, w.config(), p)); r.DeadLetters != 11 || r.Duplicates != 89 {
		t.Errorf("%v; want the dead letters told from what is new", r)
	}
	if n := w.db.Value(`select count(*) from processed_message`); n != "89" {
		t.Errorf("%s keys are kept, want 89: a dead letter's key must be new when it is replayed", n)
	}
}

// Proves that a value that is too large to keep is kept by its position, and
// that keys, headers and bytes that are no text are kept as they were.
func TestDeadLetterKeepsTheRecord(t *testing.T) {
	w := newWorld(t, 1)
	large := schema.Record{Value: append([]byte{0xff}, make([]byte, 2000)...)}
	binary := schema.Record{Key: []byte{0, 0xff}, Value: []byte{0xff, 0}, Headers: []schema.Header{{Key: "a", Value: []byte{0xfe}}, {Key: "a"}, {Key: "b\x00", Value: []byte("x")}}}
	w.produce(0, large, binary)
	cfg := w.config()
	cfg.Policy.MaxDeadLetterValue = 1000
	toEnd(t, newProcessor(t, cfg, texts(appendSink{})))
	rows := w.db.Rows(`select coalesce(record_value::text, 'by position'), value_size::text, coalesce(record_key::text, '-'), headers::text from dead_letter order by record_offset`)
	want := [][]string{{"by position", "2001", "-", "[]"}, {`\xff00`, "2", `\x00ff`, `[["a", "/g=="], ["a", null], ["b\\x00", "eA=="]]`}}
	if fmt.Sprint(rows) != fmt.Sprint(want) {
		t.Errorf("kept %v, want %v", rows, want)
	}
}

// Proves that with the policy "park" the later records of a record key wait
// behind its dead letter, in the same batch, in later ones and after a restart,
// while other keys go on; and that they go on by themselves once the dead
// letters are resolved.
func TestPark(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`alter table appended add constraint good check (id not like 'bad%')`)
	send := func(key string, values ...string) {
		for _, v := range values {
			w.produce(0, schema.Record{Key: []byte(key), Value: []byte(v)})
		}
	}
	send("a", "a1")
	send("b", "b1")
	send("a", "bad", "a2")
	send("b", "b2")
	cfg := w.config()
	cfg.Policy.OnError = processor.Park
	toEnd(t, newProcessor(t, cfg, texts(appendSink{})))
	send("a", "a3")
	send("b", "b3")
	cfg.Batch.MaxRecords = 1
	toEnd(t, newProcessor(t, cfg, texts(appendSink{})))
	if got, want := w.deadLetters(), "2 check 23514 good\n3 parked - -\n5 parked - -"; strings.ReplaceAll(got, "\n", ";") != strings.ReplaceAll(want, "\n", ";") {
		t.Errorf("dead letters:\n%s\nwant:\n%s", got, want)
	}
	w.effects(4)
	w.db.Exec(`update dead_letter set state = 'discarded', resolved_at = now()`)
	send("a", "a4")
	toEnd(t, newProcessor(t, cfg, texts(appendSink{})))
	w.effects(5)
}

// Proves that a running worker notices that its parked records were resolved by
// someone else.
func TestParkEndsWhileRunning(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`alter table appended add constraint good check (id not like 'bad%')`)
	cfg := w.config()
	cfg.Policy.OnError = processor.Park
	start(t, newProcessor(t, cfg, texts(appendSink{})))
	w.produce(0, schema.Record{Key: []byte("a"), Value: []byte("bad")})
	w.produce(0, schema.Record{Key: []byte("a"), Value: []byte("a1")})
	w.waitFor(`select count(*) from dead_letter`, "2")
	w.db.Exec(`update dead_letter set state = 'discarded', resolved_at = now()`)
	w.produce(0, schema.Record{Key: []byte("a"), Value: []byte("a2")})
	w.waitFor(`select string_agg(id, ' ') from appended`, "a2")
}

// Proves that a topic is not drained into dead letters: when more of the last
// records than the policy allows would die, the partition halts, and nothing of
// that batch is written.
func TestDeadLetterRateHalts(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`alter table appended add constraint good check (id not like 'bad%')`)
	w.produce(0, numbered("good", 100)...)
	w.produce(0, numbered("bad", 200)...)
	cfg := w.config()
	cfg.Batch.MaxRecords = 10
	cfg.Policy.DeadLetterWindow = 100
	cfg.Policy.MaxDeadLetterRate = 0.3
	halts := make(chan processor.Halt, 1)
	cfg.Hooks.Halted = func(h processor.Halt) { halts <- h }
	if err := tryToEnd(t, newProcessor(t, cfg, texts(appendSink{}))); !errors.Is(err, processor.ErrHalted) {
		t.Errorf("ended with %v", err)
	}
	h := await(t, halts, "the halt")
	dead := w.db.Value(`select count(*) from dead_letter`)
	if h.Code != "dead_letter_rate" || h.Offset != 130 || dead != "30" {
		t.Errorf("halted at %d with %s after %s dead letters: %v", h.Offset, h.Code, dead, h.Err)
	}
}

// Proves that an error which is not the messages' own makes no dead letter,
// whatever it is: a lock, a full disk, a read-only server (case E07).
func TestOutageMakesNoDeadLetters(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`create sequence tries;
create function fail() returns trigger language plpgsql as $$
declare n bigint := nextval('tries'); states text[] := array['40001', '53100', '53300', '55P03', '57014', '25006', '58030', '08006'];
begin if n <= 8 then raise exception 'try %', n using errcode = states[n]; end if; return new; end $$;
create trigger fail before insert on appended for each statement execute function fail()`)
	w.produce(0, numbered("m", 50)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(50)
	if got := w.deadLetters(); got != "" {
		t.Errorf("dead letters of an outage:\n%s", got)
	}
}

// unreachable says that something else than the message is at fault.
type unreachable struct{}

func (unreachable) Error() string     { return "the registry does not answer" }
func (unreachable) Unavailable() bool { return true }

// Proves that a decoder which cannot reach its registry makes no dead letter:
// what was decoded before passes, and the rest follows when it answers again.
func TestUnavailableDecoder(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 50)...)
	var mu sync.Mutex
	failures := 3
	p := texts(appendSink{})
	p.Decode = func(ctx context.Context, r *schema.Record) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if r.Offset == 20 && failures > 0 {
			failures--
			return "", unreachable{}
		}
		return schema.Text()(ctx, r)
	}
	toEnd(t, newProcessor(t, w.config(), p))
	w.effects(50)
	if got := w.deadLetters(); got != "" || failures != 0 {
		t.Errorf("%d failures left; dead letters: %s", failures, got)
	}
}

// reporting is a sink that answers each message with its text in JSON.
type reporting struct{ appendSink }

func (r reporting) ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) ([]schema.Outcome, error) {
	outcomes := make([]schema.Outcome, len(batch))
	for i, m := range batch {
		outcomes[i].Result, _ = json.Marshal("done " + m.Body)
	}
	return outcomes, r.Apply(ctx, tx, batch)
}

// Proves that a duplicate is given what the first run has stored, why it came
// again and where it came first: within a batch, in a later one, on another
// partition, and after a rewind; and that on request each is kept for audit.
func TestDuplicatesAreTold(t *testing.T) {
	w := newWorld(t, 2)
	w.produce(0, processortest.Values("x", "x")...)
	var told []string
	p := texts(reporting{})
	p.OnDuplicate = func(_ context.Context, _ pgx.Tx, m schema.Message[string], d processor.Duplicate) error {
		told = append(told, fmt.Sprintf("%d@%d %s of %d@%d: %s", m.Partition, m.Offset, d.Cause, d.Partition, d.Offset, d.Result))
		return nil
	}
	cfg := w.config()
	cfg.Postgres.Concurrency = 1
	cfg.Policy.RecordDuplicates = true
	toEnd(t, newProcessor(t, cfg, p))
	w.produce(1, processortest.Values("x")...)
	toEnd(t, newProcessor(t, cfg, p))
	w.db.Exec(`update consumer_offset set next_offset = 0, epoch = epoch + 1 where partition = 0`)
	toEnd(t, newProcessor(t, cfg, p))
	want := []string{
		`0@1 producer of 0@0: "done x"`,
		`1@0 producer of 0@0: "done x"`,
		`0@0 redelivery of 0@0: "done x"`,
		`0@1 producer of 0@0: "done x"`,
	}
	if strings.Join(told, "\n") != strings.Join(want, "\n") {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	if got := w.db.Value(`select string_agg(cause || ' ' || partition || '@' || record_offset, ', ' order by id) from duplicate_message`); got != "producer 0@1, producer 1@0, redelivery 0@0, producer 0@1" {
		t.Errorf("kept: %s", got)
	}
	w.effects(1)
}

// Proves the policies of a key that is used again for another payload.
func TestKeyReuse(t *testing.T) {
	t.Parallel()
	for action, want := range map[processor.Action]string{processor.DeadLetter: "1 key_reuse - -", processor.Ignore: ""} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.produce(0, processortest.Values("k 1", "k 2", "l 1", "k 1")...)
			p := texts(appendSink{})
			p.Key = schema.ByValue(func(m schema.Message[string]) string { return m.Body[:1] })
			cfg := w.config()
			cfg.Policy.OnKeyReuse = action
			toEnd(t, newProcessor(t, cfg, p))
			if got := w.deadLetters(); got != want {
				t.Errorf("dead letters: %s, want %s", got, want)
			}
			w.effects(2)
		})
	}
	t.Run("fingerprint", func(t *testing.T) {
		w := newWorld(t, 1)
		w.produce(0, processortest.Values("k at 10:00", "k at 10:01")...)
		p := texts(appendSink{})
		p.Key = schema.ByValue(func(m schema.Message[string]) string { return m.Body[:1] })
		p.Fingerprint = func(schema.Message[string]) int64 { return 0 }
		toEnd(t, newProcessor(t, w.config(), p))
		w.effects(1)
		if got := w.deadLetters(); got != "" {
			t.Errorf("a retry with a new time stamp became a dead letter: %s", got)
		}
	})
}
