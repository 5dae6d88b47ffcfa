package processor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// guardSink appends what its table's unique constraint does not know, and calls
// the rest duplicates.
type guardSink struct{}

const guarded = `alter table appended add unique (id), add constraint good check (id not like 'bad%')`

func (guardSink) Guarding() error { return nil }

func (s guardSink) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
	_, err := s.ApplyReport(ctx, tx, batch)
	return err
}

func (guardSink) ApplyReport(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) ([]schema.Outcome, error) {
	outcomes := make([]schema.Outcome, len(batch))
	for i, m := range batch {
		tag, err := tx.Exec(ctx, `insert into appended (id, p, o) values ($1, $2, $3) on conflict (id) do nothing`, m.Body, m.Partition, m.Offset)
		if err != nil {
			return nil, err
		}
		outcomes[i].Duplicate = tag.RowsAffected() == 0
	}
	return outcomes, nil
}

func byConstraint(sink processor.Sink[string]) processor.Pipeline[string] {
	p := texts(sink)
	p.Guard = processor.GuardConstraint
	return p
}

// Proves that with the constraint as guard each key has one effect, within a
// batch, across partitions and where another group reads all of it again, that no
// key is written, and that the account counts what the sink has called duplicates.
func TestGuardConstraint(t *testing.T) {
	w := newWorld(t, 2)
	w.db.Exec(guarded)
	w.produce(0, append(numbered("m", 50), numbered("m", 10)...)...)
	w.produce(1, numbered("m", 60)...)
	toEnd(t, newProcessor(t, w.config(), byConstraint(guardSink{})))
	w.effects(60)
	if got, want := w.account(), "records 120, producer duplicates 60, redelivered 0, offsets 120"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	again := w.config()
	again.Group += "-again"
	toEnd(t, newProcessor(t, again, byConstraint(guardSink{})))
	w.effects(60)
	if got := w.db.Value(`select count(*) from processed_message`); got != "0" {
		t.Errorf("%s keys were written", got)
	}
}

// Proves that a replay asks the constraint: all is known, but for a row that is
// gone; and that it leaves nothing.
func TestGuardConstraintReplay(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(guarded)
	w.produce(0, append(numbered("m", 20), numbered("m", 5)...)...)
	p := newProcessor(t, w.config(), byConstraint(guardSink{}))
	toEnd(t, p)
	for gone, want := range []string{"25 0", "24 1"} {
		w.db.Exec(fmt.Sprintf(`delete from appended where id = 'm%d' and %d > 0`, 7, gone))
		report, err := p.Replay(t.Context(), processor.Range{})
		must(t, err)
		if got := fmt.Sprint(report.Duplicates, " ", report.Fresh); got != want {
			t.Errorf("duplicates and fresh %s, want %s", got, want)
		}
		w.effects(20 - gone)
	}
}

// Proves that a message at fault is set aside without a key to forget, its repeat
// judged anew, and the others pass; and that it is replayed as others are.
func TestGuardConstraintDeadLetters(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(guarded)
	records := numbered("m", 20)
	records[3].Value, records[9].Value = []byte("bad"), []byte("bad")
	w.produce(0, records...)
	p := newProcessor(t, w.config(), byConstraint(guardSink{}))
	toEnd(t, p)
	w.effects(18)
	if got, want := w.deadLetters(), "3 check 23514 good\n9 check 23514 good"; got != want {
		t.Errorf("dead letters:\n%s\nwant:\n%s", got, want)
	}
	w.db.Exec(`alter table appended drop constraint good`)
	if got := replayLetters(t, p, offsets.DeadLetterFilter{}, processor.ReplayOptions{}); got != "3 applied, 9 duplicate" {
		t.Errorf("replayed: %s", got)
	}
}

// Proves which guards are refused, before anything is read.
func TestGuardRefused(t *testing.T) {
	w := newWorld(t, 1)
	err := tryToEnd(t, newProcessor(t, w.config(), byConstraint(appendSink{})))
	if err == nil || !strings.Contains(err.Error(), "pipeline.guard constraint: a sink of type processor_test.appendSink does not tell duplicates") {
		t.Errorf("got %v", err)
	}
	unknown := texts(guardSink{})
	unknown.Guard = "index"
	told := byConstraint(guardSink{})
	told.OnDuplicate = func(context.Context, pgx.Tx, schema.Message[string], processor.Duplicate) error { return nil }
	for want, p := range map[string]processor.Pipeline[string]{
		`config: pipeline.guard "index" is neither key nor constraint`:        unknown,
		`config: pipeline.on_duplicate is never called with guard constraint`: told,
	} {
		if _, err := processor.New(w.config(), p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
