package processor_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
)

// Proves of each kind of fault that a message can have of its own: the messages
// before it pass, its partition halts at it with the code and the position, and
// the other partition goes on.
func TestOwnFaultHaltsItsPartition(t *testing.T) {
	t.Parallel()
	const bad = 37 // the offset of the bad message
	tests := map[string]struct {
		message schema.Record
		prepare string // SQL
		sink    processor.Sink[string]
		code    string
	}{
		"decode":      {message: schema.Record{Value: []byte("\xff\xfe")}, code: "decode"},
		"key missing": {message: schema.Record{Value: []byte{}}, code: "key_missing"},
		"tombstone":   {message: schema.Record{}, code: "tombstone"},
		"key reuse":   {message: schema.Record{Value: []byte("m3 again")}, code: "key_reuse"},
		"check":       {message: schema.Record{Value: []byte("bad")}, prepare: `alter table appended add check (id <> 'bad')`, code: "check"},
		"unique": {
			message: schema.Record{Value: []byte("bad")}, code: "unique",
			prepare: `create unique index on appended ((case when id in ('bad', 'm5') then 0 else o * 2 + p + 1 end))`,
		},
		"value range": {message: schema.Record{Value: []byte("a\x00b")}, code: "value_range"},
		"handler": {
			message: schema.Record{Value: []byte("bad")}, code: "handler",
			sink: sinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
				for _, m := range batch {
					if m.Body == "bad" {
						return schema.Faultf(m.Record, schema.ReasonHandler, "it is bad")
					}
				}
				return appendSink{}.Apply(ctx, tx, batch)
			}),
		},
		"panic": {
			message: schema.Record{Value: []byte("bad")}, code: "handler",
			sink: sinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
				for _, m := range batch {
					if m.Body == "bad" {
						panic("it is bad")
					}
				}
				return appendSink{}.Apply(ctx, tx, batch)
			}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			if tt.prepare != "" {
				w.db.Exec(tt.prepare)
			}
			w.produce(0, numbered("m", bad)...)
			w.produce(0, tt.message)
			w.produce(0, numbered("n", 20)...)
			w.produce(1, numbered("o", 50)...)
			p := texts(appendSink{})
			if tt.sink != nil {
				p.Sink = tt.sink
			}
			p.Key = schema.ByValue(func(m schema.Message[string]) string { return strings.TrimSuffix(m.Body, " again") })
			halt := runToHalt(t, w, p)
			if halt.Code != tt.code || halt.Partition != 0 || halt.Offset != bad {
				t.Errorf("halted %d@%d with %s: %v; want 0@%d with %s", halt.Partition, halt.Offset, halt.Code, halt.Err, bad, tt.code)
			}
			if f, ok := errors.AsType[*schema.Fault](halt.Err); !ok || !strings.Contains(f.Error(), fmt.Sprintf("/0@%d", bad)) {
				t.Errorf("the reason does not name the position: %v", halt.Err)
			}
			w.effects(bad + 50)
		})
	}
}

// Proves that after a unique violation the connection is of use again: the
// message before it is stored, no "25P02" appears, and once the cause is gone
// the rest follows after a restart (case D01).
func TestGoesOnAfterTheCauseIsGone(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`create unique index one on appended (left(id, 1))`)
	w.produce(0, processortest.Values("1-a", "1-b", "2-c")...)
	if halt := runToHalt(t, w, texts(appendSink{})); halt.Code != "unique" || halt.Offset != 1 || strings.Contains(halt.Err.Error(), "25P02") {
		t.Errorf("halted at %d with %s: %v", halt.Offset, halt.Code, halt.Err)
	}
	w.effects(1)
	w.db.Exec(`drop index one`)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(3)
	if state := w.db.Value(`select state from consumer_offset`); state != "open" {
		t.Errorf("the state is %s", state)
	}
}

// Proves that a fault of the set-up halts at once, with its own code, instead
// of blaming messages one by one; and that a start without the table works
// again when the table is there.
func TestSystemicFaultHalts(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(`alter table appended rename to gone`)
	w.produce(0, numbered("m", 100)...)
	var attempts atomic.Int64
	counting := sinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
		attempts.Add(1)
		return appendSink{}.Apply(ctx, tx, batch)
	})
	if halt := runToHalt(t, w, texts(counting)); halt.Code != "systemic" || attempts.Load() != 1 {
		t.Errorf("halted with %s after %d attempts: %v", halt.Code, attempts.Load(), halt.Err)
	}
	w.db.Exec(`alter table gone rename to appended`)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(100)
}

// Proves that an error of unknown kind is tried the number of times that the
// configuration says, then halts.
func TestRetriesAreExhausted(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 3)...)
	var attempts atomic.Int64
	p := texts(sinkFunc(func(context.Context, pgx.Tx, []schema.Message[string]) error {
		attempts.Add(1)
		return errors.New("the moon is in the wrong place")
	}))
	halts := make(chan processor.Halt, 1)
	cfg := w.config()
	cfg.Retry.Attempts = 4
	cfg.Hooks.Halted = func(h processor.Halt) { halts <- h }
	if err := tryToEnd(t, newProcessor(t, cfg, p)); !errors.Is(err, processor.ErrHalted) {
		t.Errorf("ended with %v", err)
	}
	if h := await(t, halts, "the halt"); h.Code != "retries_exhausted" || attempts.Load() != 4 {
		t.Errorf("halted with %s after %d attempts: %v", h.Code, attempts.Load(), h.Err)
	}
}

// Proves that user code cannot end the transaction it works in, and can use a
// savepoint.
func TestTransactionIsOwned(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 10)...)
	p := texts(sinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
		if err := tx.Commit(ctx); !errors.Is(err, processor.ErrTxOwned) {
			t.Errorf("Commit answers %v", err)
		}
		if err := tx.Rollback(ctx); !errors.Is(err, processor.ErrTxOwned) {
			t.Errorf("Rollback answers %v", err)
		}
		undone := errors.New("undone")
		err := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
			if err := (appendSink{}).Apply(ctx, savepoint, batch); err != nil {
				return err
			}
			return undone
		})
		if !errors.Is(err, undone) {
			return err
		}
		return appendSink{}.Apply(ctx, tx, batch)
	}))
	toEnd(t, newProcessor(t, w.config(), p))
	w.effects(10)
}

// Proves that two workers which update the same rows in different orders lose
// and double nothing, however often they deadlock, and that no deadlock makes
// a halt (case D03).
func TestDeadlocksAreRetried(t *testing.T) {
	w := newWorld(t, 2)
	w.db.Exec(`create table cnt (k text primary key, n bigint not null default 0); insert into cnt values ('A', 0), ('B', 0)`)
	const each = 400
	for p := range int32(2) {
		w.produce(p, numbered(fmt.Sprintf("%c", 'A'+p), each)...)
	}
	// One update a message, the partition's own row first: two batches meet crosswise.
	crosswise := sinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
		first, second := batch[0].Body[:1], map[string]string{"A": "B", "B": "A"}[batch[0].Body[:1]]
		for _, k := range []string{first, second} {
			if _, err := tx.Exec(ctx, `update cnt set n = n + $2 where k = $1`, k, len(batch)); err != nil {
				return err
			}
		}
		return nil
	})
	var deadlocks atomic.Int64
	cfg := w.config()
	cfg.Batch.MaxRecords = 10
	cfg.Hooks.RolledBack = func(_ processor.BatchInfo, err error) {
		if strings.Contains(err.Error(), "40P01") {
			deadlocks.Add(1)
		}
	}
	toEnd(t, newProcessor(t, cfg, texts(crosswise)))
	want := strconv.Itoa(2 * each)
	if got := w.db.Value(`select string_agg(n::text, ' ' order by k) from cnt`); got != want+" "+want {
		t.Errorf("counters are %s, want twice %s (%d deadlocks)", got, want, deadlocks.Load())
	}
	t.Logf("%d deadlocks", deadlocks.Load())
}
