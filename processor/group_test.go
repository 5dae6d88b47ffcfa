package processor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
)

// slow is an append sink that stops at the message "slow" until it is let go,
// or its transaction is aborted.
type slow struct {
	reached chan struct{}
	letGo   chan struct{}
}

func newSlow() *slow { return &slow{make(chan struct{}, 10), make(chan struct{})} }

func (s *slow) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
	for _, m := range batch {
		if strings.HasPrefix(m.Body, "slow") {
			s.reached <- struct{}{}
			select {
			case <-s.letGo:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return appendSink{}.Apply(ctx, tx, batch)
}

// Proves that a transaction which is in flight when its partition is revoked
// is finished before the hand-over if it ends within the budget, and is let go
// if it does not: the stored offset never runs ahead of the effects, and each
// record has one effect (case A07).
func TestRevokeInMidTransaction(t *testing.T) {
	t.Parallel()
	for name, endsInTime := range map[string]bool{"ends within the budget": true, "exceeds the budget": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			for p := range int32(2) {
				w.produce(p, numbered(fmt.Sprint("slow", p), 1)...)
			}
			sink := newSlow()
			first := w.config()
			first.DrainTimeout = patience
			if !endsInTime {
				first.DrainTimeout = 1 // a nanosecond
			}
			start(t, newProcessor(t, first, texts(sink)))
			await(t, sink.reached, "the first slow transaction")
			await(t, sink.reached, "the second slow transaction")
			second := w.config()
			second.Owner = "heir"
			start(t, newProcessor(t, second, texts(appendSink{})))
			if endsInTime {
				w.waitFor(`select count(*) from consumer_offset where owner = 'heir'`, "0")
				close(sink.letGo)
			}
			w.waitFor(`select count(*) from consumer_offset where owner = 'heir'`, "1")
			if !endsInTime {
				w.waitFor(`select count(*) from appended`, "1") // the heir's; the other is in work
				close(sink.letGo)
			}
			w.waitFor(`select sum(next_offset) from consumer_offset`, "2")
			w.effects(2)
		})
	}
}

// Proves that a slow record in the middle holds back what lies behind it, and
// that after a kill all of it is there once (case A11).
func TestSlowRecordHoldsBackTheRest(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 3)...)
	w.produce(0, numbered("slow", 1)...)
	w.produce(0, numbered("n", 6)...)
	sink := newSlow()
	cfg := w.config()
	cfg.Batch.MaxRecords = 1
	cfg.DrainTimeout = 1
	r := start(t, newProcessor(t, cfg, texts(sink)))
	await(t, sink.reached, "the slow record")
	if next := w.db.Value(`select next_offset from consumer_offset`); next != "3" {
		t.Errorf("the stored offset is %s while record 3 is in work", next)
	}
	r.finish()
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(10)
}

// Proves that back-pressure which pauses a partition does not outlive the
// assignment: a partition that leaves while it is paused and comes back is read
// on (case H01).
func TestPauseDoesNotSurviveReassignment(t *testing.T) {
	w := newWorld(t, 2)
	sink := newSlow()
	for p := range int32(2) {
		w.produce(p, numbered(fmt.Sprintf("slow%d-", p), 1)...)
		w.produce(p, numbered(fmt.Sprintf("p%d-", p), 5000)...)
	}
	paused := make(chan int32, 100)
	cfg := w.config()
	cfg.Batch.MaxRecords = 10
	cfg.Hooks.Paused = func(_ string, partition int32) { paused <- partition }
	start(t, newProcessor(t, cfg, texts(sink)))
	seen := map[int32]bool{}
	for len(seen) < 2 {
		seen[await(t, paused, "both partitions to be paused")] = true
	}
	close(sink.letGo)
	guest := w.process(t)
	waitLine(t, guest, `claimed`)
	terminated(t, guest)
	w.waitFor(`select sum(next_offset) from consumer_offset`, "10002")
	w.effects(10_002)
}

// Proves that many members which are told to stop at the same moment, under
// load, all end within their grace time and with exit code 0, and that nothing
// is lost or doubled (case H03, fault 6).
func TestManyStopAtOnce(t *testing.T) {
	w := newWorld(t, 6)
	rounds := 3
	for round := range rounds {
		for p := range int32(6) {
			w.produce(p, numbered(fmt.Sprintf("r%dp%d-", round, p), 1000)...)
		}
		var members []*processortest.Process
		for range 4 {
			members = append(members, w.process(t))
		}
		for _, m := range members {
			waitLine(t, m, `^STARTED$`)
		}
		waitLine(t, members[0], `claimed`)
		var wg sync.WaitGroup
		for _, m := range members {
			wg.Go(func() { terminated(t, m) })
		}
		wg.Wait()
	}
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.effects(rounds * 6 * 1000)
}

// Proves that a missing topic is warned of by name, with similar names, and
// read without a restart once it exists; and that it is an error at once where
// it is required (case H07).
func TestMissingTopic(t *testing.T) {
	w := newWorld(t, 1)
	warned := make(chan string, 10)
	cfg := w.config()
	cfg.Kafka.Topic += "s"
	cfg.Logger = slog.New(slog.NewTextHandler(lines(warned), nil))
	start(t, newProcessor(t, cfg, texts(appendSink{})))
	line := awaitLine(t, warned, "does not exist")
	if !strings.Contains(line, cfg.Kafka.Topic) || !strings.Contains(line, "similar: "+w.topic) {
		t.Errorf("the warning is %q", line)
	}
	w.CreateTopic(t, cfg.Kafka.Topic, 1)
	w.Produce(t, cfg.Kafka.Topic, 0, numbered("m", 10)...)
	w.waitFor(`select sum(next_offset) from consumer_offset`, "10")

	cfg.Group += "-strict"
	cfg.Kafka.Topic += "x"
	cfg.Kafka.RequireTopic = true
	if err := tryToEnd(t, newProcessor(t, cfg, texts(appendSink{}))); !errors.Is(err, processor.ErrNoTopic) {
		t.Errorf("a required topic that is missing: %v", err)
	}
}

// awaitLine waits for a line with the text.
func awaitLine(tb testing.TB, written <-chan string, text string) string {
	tb.Helper()
	for {
		if line := await(tb, written, "a line with "+text); strings.Contains(line, text) {
			return line
		}
	}
}

// lines sends what is written to a channel, and drops it when that is full.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}
