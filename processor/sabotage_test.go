package processor_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/processor/processortest/check"
	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
)

// The sabotages that need a schedule of their own to be seen; the letters are
// those of the README's table. The program is as it is: its statements are changed
// on the wire, or its client by an option.

// journaled has the database note which transaction has moved a position, and
// which has written an effect.
func (w *world) journaled() {
	w.tb.Helper()
	w.db.Exec(strings.ReplaceAll(`
		alter table appended add xid xid8 not null default pg_current_xact_id();
		create table journal (id bigint generated always as identity, partition int not null, from_offset bigint not null, to_offset bigint not null,
		  epoch bigint not null, pass boolean not null, xid xid8 not null default pg_current_xact_id());
		create function journal() returns trigger language plpgsql as $$
		begin
		  insert into $schema.journal (partition, from_offset, to_offset, epoch, pass)
		  values (new.partition, old.next_offset, new.next_offset, new.epoch, new.epoch = old.epoch);
		  return null;
		end $$;
		create trigger journal after update on consumer_offset for each row
		  when (old.next_offset is distinct from new.next_offset) execute function journal()`, "$schema", w.db.Schema))
}

// left reads what a run of the append sink has left. The log had the messages of
// the prefix in partition 0.
func (w *world) left(prefix string, n int) *check.History {
	w.tb.Helper()
	h := &check.History{}
	for i := range n {
		h.Records = append(h.Records, check.Record{Offset: int64(i), ID: fmt.Sprint(prefix, i)})
	}
	read(w, `select id, p, o, seq, xid::text from appended where id like '`+prefix+`%' order by seq`, &h.Appended,
		func(a *check.Append) []any { return []any{&a.ID, &a.Partition, &a.Offset, &a.At, &a.Tx} })
	read(w, `select partition, from_offset, to_offset, epoch, xid::text from journal where pass order by id`, &h.Passes,
		func(p *check.Pass) []any { return []any{&p.Partition, &p.From, &p.To, &p.Epoch, &p.Tx} })
	read(w, `select partition, first_offset, next_offset, epoch, state, coalesce(split_part(reason, ':', 1), '') from consumer_offset`, &h.Positions,
		func(p *check.Position) []any {
			return []any{&p.Partition, &p.First, &p.Next, &p.Epoch, &p.State, &p.Reason}
		})
	return h
}

func read[E any](w *world, sql string, all *[]E, into func(*E) []any) {
	w.tb.Helper()
	rows, err := w.db.Pool.Query(w.tb.Context(), sql)
	must(w.tb, err)
	*all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e E, err error) {
		err = row.Scan(into(&e)...)
		return e, err
	})
	must(w.tb, err)
}

// judged checks which invariants a history violates, of those that a run of the
// append sink has a subject for, and says what was found.
func judged(tb testing.TB, h *check.History, want ...string) {
	tb.Helper()
	var caught []string
	for _, v := range check.Violated(check.Judge(h)) {
		if slices.Contains([]string{"I1", "I2", "I4", "I12"}, v.Invariant) {
			caught = append(caught, v.Invariant)
			tb.Log(v)
		}
	}
	tb.Logf("caught by %v", caught)
	if !slices.Equal(caught, want) {
		tb.Errorf("caught by %v, want %v", caught, want)
	}
}

// wired puts a proxy before the database that changes statements on their way; one
// that has changed nothing would prove nothing.
func wired(tb testing.TB, cfg *processor.Config, rule pgproxy.Rule) {
	tb.Helper()
	proxy, err := pgproxy.Listen(cfg.Postgres.URL)
	must(tb, err)
	var struck atomic.Int64
	tb.Cleanup(func() {
		must(tb, proxy.Close())
		if struck.Load() == 0 {
			tb.Error("no statement was changed")
		}
	})
	proxy.SetRule(func(m pgproxy.Message) pgproxy.Action {
		a := rule(m)
		if a.SQL != "" || a.Tag != "" {
			struck.Add(1)
		}
		return a
	})
	cfg.Postgres.URL = proxy.URL()
}

// without is a rule that takes a condition away from the statements that have it.
func without(condition, instead string) pgproxy.Rule {
	return func(m pgproxy.Message) pgproxy.Action {
		if m.ToServer && m.Kind == 'P' && strings.Contains(m.SQL, condition) {
			return pgproxy.Action{SQL: strings.Replace(m.SQL, condition, instead, 1)}
		}
		return pgproxy.Pass
	}
}

// uncounted has a worker overlook that its advance has moved nothing: it is told of
// one row, and its keys ask no more whether the row was moved.
func uncounted(schema string) pgproxy.Rule {
	keys := without(strings.ReplaceAll(`where exists (
  select from "$schema"."consumer_offset"
  where consumer_group = $6 and topic = $7 and partition = $4 and epoch = $8 and next_offset = $9
)`, "$schema", schema), "where $6::text is not null and $7::text is not null and $8::bigint is not null and $9::bigint is not null")
	return func(m pgproxy.Message) pgproxy.Action {
		if m.Tag == "UPDATE 0" {
			return pgproxy.Action{Tag: "UPDATE 1"}
		}
		return keys(m)
	}
}

// Proves that (c) an advance whose row count is not looked at is caught: a zombie
// with records in hand, whose successor has claimed and passed nothing yet, writes
// their effects in transactions that pass no offset. In a run of many workers this
// is hardly seen: the successor has passed the same by then, and the keys refuse it.
func TestSabotageRowCount(t *testing.T) {
	for name, caught := range map[string][]string{
		"as it is":                              nil,
		"c: the advance's row count overlooked": {"I4"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.journaled()
			w.produce(0, numbered("m", 100)...)
			cfg := w.config()
			cfg.Batch.MaxRecords = 10
			if caught != nil {
				wired(t, &cfg, uncounted(w.db.Schema))
			}
			cfg.Hooks.Step = func(s processor.Step, b processor.BatchInfo) {
				if s == processor.StepAdmit && b.From == 50 && b.Epoch == 1 {
					w.claimAs("successor", 0)
				}
			}
			start(t, newProcessor(t, cfg, texts(appendSink{})))
			w.next(0, 100)
			judged(t, w.left("m", 100), caught...)
		})
	}
}

// claimAs claims a partition of the world's topic for another owner, who then does
// nothing with it.
func (w *world) claimAs(owner string, partition int32) {
	topic, err := processor.InspectTopic(w.tb.Context(), w.config().Kafka)
	if err == nil {
		ledger := offsets.New(offsets.Options{Schema: w.db.Schema, Group: w.group, Topic: w.topic})
		_, _, err = ledger.Claim(w.tb.Context(), w.db.Pool, owner, offsets.Identity{ClusterID: topic.ClusterID, TopicID: topic.ID}, []offsets.Assigned{{Partition: partition}})
	}
	if err != nil {
		w.tb.Errorf("claim for %s: %v", owner, err)
	}
}

// Proves that (f) a claim that is given up before what is under way was drained
// costs no safety, as the fence holds: it costs the batches that were under way,
// which the hook of rolled back batches, and so its metric, shows.
func TestSabotageDrain(t *testing.T) {
	for name, c := range map[string]struct {
		budget time.Duration
		wasted int64
	}{
		"as it is":                               {patience, 0},
		"f: the claim given up before the drain": {1, 1}, // a nanosecond
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.journaled()
			for p, prefix := range []string{"m", "n"} {
				w.produce(int32(p), append(processortest.Values("slow "+prefix), numbered(prefix, 49)...)...)
			}
			var rolledBack atomic.Int64
			sink, cfg := newSlow(), w.config()
			cfg.DrainTimeout = c.budget
			cfg.Hooks.RolledBack = func(processor.BatchInfo, error) { rolledBack.Add(1) }
			start(t, newProcessor(t, cfg, texts(sink)))
			await(t, sink.reached, "the transaction of one partition")
			await(t, sink.reached, "the transaction of the other")
			heir := w.config()
			heir.Owner = "heir"
			start(t, newProcessor(t, heir, texts(appendSink{})))
			if c.wasted == 0 {
				w.joined(2)
				close(sink.letGo)
			}
			w.waitFor(`select count(*) from consumer_offset where owner = 'heir'`, "1")
			if c.wasted > 0 {
				close(sink.letGo)
			}
			w.waitFor(`select sum(next_offset) from consumer_offset`, "100")
			w.effects(100)
			judged(t, w.left("", 0))
			if got := rolledBack.Load(); got != c.wasted {
				t.Errorf("%d batches were wasted, want %d", got, c.wasted)
			}
			t.Logf("%d batches wasted", rolledBack.Load())
		})
	}
}

// joined waits until the group has so many members.
func (w *world) joined(want int) {
	w.tb.Helper()
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		if members, _ := w.GroupMembers(w.tb, w.group); members == want {
			return
		}
		if time.Now().After(deadline) {
			w.tb.Fatalf("the group never had %d members", want)
		}
	}
}

// Proves that (g) a client that chooses a new offset by itself when its own is out
// of range is caught: what retention has taken under a slow reader is passed
// without a word, where it must halt.
func TestSabotageReset(t *testing.T) {
	for name, c := range map[string]struct {
		options []kgo.Opt
		caught  []string
	}{
		"as it is":                           {nil, nil},
		"g: automatic reset on out-of-range": {[]kgo.Opt{kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}, []string{"I12"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			random := rand.NewChaCha8([32]byte{})
			values := make([]string, 400)
			for i := range values { // of no pattern: the client cannot read all of it ahead
				noise := make([]byte, 8_000)
				_, _ = random.Read(noise) // never fails
				values[i] = fmt.Sprintf("m%d %s", i, hex.EncodeToString(noise))
			}
			values[0] = "slow " + values[0]
			w.produce(0, processortest.Values(values...)...)
			sink, cfg := newSlow(), w.config()
			cfg.Batch.MaxRecords = 10
			cfg.Kafka.Options = c.options
			start(t, newProcessor(t, cfg, texts(sink)))
			await(t, sink.reached, "the slow message")
			w.DeleteRecords(t, w.topic, 0, 390)
			close(sink.letGo)
			w.waitFor(`select state = 'halted' or next_offset = 400 from consumer_offset`, "t")
			var due check.Halt
			due.Code = processor.CodeRetentionPassed
			must(t, w.db.Pool.QueryRow(t.Context(), `
				select (select max(o) + 1 from appended where o < 390), next_offset, coalesce(split_part(reason, ':', 1), '') from consumer_offset`).
				Scan(&due.At, &due.Stood, &due.Seen))
			judged(t, &check.History{Halts: []check.Halt{due}}, c.caught...)
		})
	}
}

// Proves that (h) a ledger that knows a topic by its name only is caught: the topic
// that was created again is read from the old one's offset, where it must halt.
func TestSabotageIdentity(t *testing.T) {
	const identity = "\nwhere o.topic_id = excluded.topic_id and o.cluster_id = excluded.cluster_id"
	for name, c := range map[string]struct {
		rule   pgproxy.Rule
		caught []string
	}{
		"as it is":                        {nil, nil},
		"h: the ledger keyed by the name": {without(identity, ""), []string{"I1", "I12"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.journaled()
			w.produce(0, numbered("old", 100)...)
			toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
			w.DeleteTopic(t, w.topic)
			w.CreateTopic(t, w.topic, 1)
			w.produce(0, numbered("new", 150)...)
			cfg := w.config()
			if c.rule != nil {
				wired(t, &cfg, c.rule)
			}
			start(t, newProcessor(t, cfg, texts(appendSink{})))
			w.waitFor(`select state = 'halted' or next_offset = 150 from consumer_offset`, "t")
			h := w.left("new", 150)
			stands := h.Positions[0]
			if c.rule == nil {
				h.Records = nil // nothing of the new topic was passed
			}
			h.Halts = []check.Halt{{Code: processor.CodeTopicRecreated, At: 100, Stood: stands.Next, Seen: stands.Reason}}
			judged(t, h, c.caught...)
		})
	}
}
