//go:build broker

package processor_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
)

// stream is a producer that sends numbered messages to all partitions in turn
// until it is ended, through every outage of the broker.
type stream struct {
	w          *world
	partitions atomic.Int32
	stop       context.CancelFunc
	done       chan struct{}
	sent       int // messages acknowledged; read it when done is closed
	err        error
}

// streamTo starts the producer; the test's end ends it, too.
func streamTo(w *world, partitions int32) *stream {
	w.tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &stream{w: w, stop: cancel, done: make(chan struct{})}
	s.partitions.Store(partitions)
	go func() {
		defer close(s.done)
		for ctx.Err() == nil && s.err == nil {
			s.err = s.run(ctx, s.partitions.Load())
		}
	}()
	w.tb.Cleanup(func() {
		cancel()
		<-s.done
	})
	return s
}

// run sends a round of messages now and then, until the number of partitions
// changes: then another client, which knows them, goes on. A round is never cut
// short: what has been sent without an answer could be there or not.
func (s *stream) run(ctx context.Context, partitions int32) error {
	k, err := kgo.NewClient(kgo.SeedBrokers(s.w.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer k.Close()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil && s.partitions.Load() == partitions {
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
// does it, ten times over, all end within their grace time and with exit code 0,
// that nothing is lost or doubled, and that no record was counted twice; the
// batches that were begun in vain are counted (case H14).
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	const rounds = 10
	w := newWorld(t, 4)
	var members []*processortest.Process
	for range 3 {
		members = append(members, w.process(t))
	}
	s := streamTo(w, 4)
	wasted, longest := 0, time.Duration(0)
	for round := range rounds * len(members) {
		w.waitUntil(`select (count(distinct owner) = 3)::text from consumer_offset`)
		leaving := members[round%3]
		began := time.Now()
		wasted += stopped(t, leaving)
		longest = max(longest, time.Since(began))
		members[round%3] = w.process(t)
		waitLine(t, members[round%3], `claimed`)
	}
	total := s.end()
	w.waitFor(`select sum(next_offset) from consumer_offset`, fmt.Sprint(total))
	for _, m := range members {
		wasted += stopped(t, m)
	}
	w.effects(total)
	w.exactly(total, 0)
	t.Logf("%d messages, %d restarts: %d batches begun in vain; the slowest stop took %.2f s", total, rounds*len(members), wasted, longest.Seconds())
}

// stopped ends a process by SIGTERM, checks that it has left its group, and
// returns how many batches it has begun in vain.
func stopped(tb testing.TB, p *processortest.Process) int {
	tb.Helper()
	terminated(tb, p)
	if said := strings.Join(p.Lines(), "\n"); strings.Contains(said, "was not told of our leave") {
		tb.Errorf("it has not left the group:\n%s", said)
	}
	n, err := strconv.Atoi(waitLine(tb, p, `^WASTED (\d+) batches$`)[1])
	must(tb, err)
	return n
}

// exactly checks the account: so many messages, and so many that the producer
// sent again.
func (w *world) exactly(messages, again int) {
	w.tb.Helper()
	want := fmt.Sprintf("records %d, producer duplicates %d, redelivered 0, offsets %d", messages+again, again, messages+again)
	if got := w.account(); got != want {
		w.tb.Errorf("account: %s, want %s", got, want)
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
