//go:build broker

package processor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
)

// stream is a producer that sends numbered messages to all partitions in turn
// until it is ended, through every outage of the broker.
type stream struct {
	w    *world
	stop context.CancelFunc
	done chan struct{}
	sent int // messages acknowledged; read it when done is closed
	err  error
}

// streamTo starts the producer; the test's end ends it, too.
func streamTo(w *world, partitions int32) *stream {
	w.tb.Helper()
	k, err := kgo.NewClient(kgo.SeedBrokers(w.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(w.tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	s := &stream{w: w, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer k.Close()
		s.err = s.run(ctx, k, partitions)
	}()
	w.tb.Cleanup(func() {
		cancel()
		<-s.done
	})
	return s
}

// run sends a round of messages now and then. A round is never cut short: what
// has been sent without an answer could be there or not.
func (s *stream) run(ctx context.Context, k *kgo.Client, partitions int32) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		round := make([]*kgo.Record, 0, 40)
		for i := range 40 {
			n := s.sent + i
			round = append(round, &kgo.Record{Topic: s.w.topic, Partition: int32(n) % partitions, Value: fmt.Append(nil, "m", n)})
		}
		limit, cancel := context.WithTimeout(context.Background(), patience)
		err := k.ProduceSync(limit, round...).FirstErr()
		cancel()
		if err != nil {
			return fmt.Errorf("after %d messages: %w", s.sent, err)
		}
		s.sent += len(round)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// end ends the producer and returns how many messages it has sent.
func (s *stream) end() int {
	s.w.tb.Helper()
	s.stop()
	<-s.done
	must(s.w.tb, s.err)
	return s.sent
}

// Proves that a broker which is stopped in good order, killed, and killed again,
// each time under load, and comes back costs nothing but time: nothing is lost
// or doubled, and nobody has to restart the processor (faults 15 and 16).
func TestBrokerRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	broker := processortest.Broker(t, processortest.BrokerOptions{})
	w := newWorldOn(t, broker.Client, 4)
	committed := make(chan struct{}, 1)
	cfg := w.config()
	cfg.Hooks.Committed = func(processor.BatchInfo) {
		select {
		case committed <- struct{}{}:
		default:
		}
	}
	here := start(t, newProcessor(t, cfg, texts(appendSink{})))
	there := w.process(t)
	waitLine(t, there, `claimed`)
	s := streamTo(w, 4)
	for _, end := range []func() error{func() error { return broker.Stop(t.Context()) }, broker.Kill, broker.Kill} {
		await(t, committed, "a commit before the outage")
		must(t, end())
		must(t, broker.Restart(t.Context()))
		back, before := time.Now(), w.db.Value(`select sum(next_offset) from consumer_offset`)
		w.waitUntil(`select (sum(next_offset) > $1::bigint)::text from consumer_offset`, before)
		t.Logf("the first records were handled %.1f s after the broker was back", time.Since(back).Seconds())
		emptied(committed)
	}
	total := s.end()
	w.waitFor(`select sum(next_offset) from consumer_offset`, fmt.Sprint(total))
	here.finish()
	terminated(t, there)
	w.effects(total)
	replayed(t, newProcessor(t, w.config(), texts(appendSink{})))
}

// Proves that members which are replaced one by one under load, as a deployment
// does it, all end with exit code 0, that nothing is lost or doubled, and that no
// record was counted twice.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	var members []*processortest.Process
	for range 3 {
		members = append(members, w.process(t))
	}
	s := streamTo(w, 4)
	for i := range members {
		w.waitUntil(`select (count(distinct owner) = 3)::text from consumer_offset`)
		terminated(t, members[i])
		members[i] = w.process(t)
		waitLine(t, members[i], `claimed`)
	}
	total := s.end()
	w.waitFor(`select sum(next_offset) from consumer_offset`, fmt.Sprint(total))
	for _, m := range members {
		terminated(t, m)
	}
	w.effects(total)
	if got, want := w.account(), fmt.Sprintf("records %d, producer duplicates 0, redelivered 0, offsets %d", total, total); got != want {
		t.Errorf("account: %s, want %s", got, want)
	}
}

// waitUntil waits until a query answers true.
func (w *world) waitUntil(query string, args ...any) {
	w.tb.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("patience"))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for w.db.Value(query, args...) != "true" {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.tb.Fatalf("%s\nhas not become true within %v", query, patience)
		}
	}
}

// emptied takes back a signal that came before now.
func emptied(signals <-chan struct{}) {
	select {
	case <-signals:
	default:
	}
}
