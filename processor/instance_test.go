package processor_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
)

// impostor joins the world's group with an instance id that another member has,
// as the clone of a machine would.
func (w *world) impostor(id string, opts ...kgo.Opt) *kgo.Client {
	w.tb.Helper()
	k, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(w.Addrs()...), kgo.ConsumerGroup(w.group), kgo.ConsumeTopics(w.topic), kgo.InstanceID(id), kgo.SessionTimeout(3 * time.Second), kgo.Balancers(kgo.CooperativeStickyBalancer()),
	}, opts...)...)
	must(w.tb, err)
	w.tb.Cleanup(k.CloseAllowingRebalance)
	return k
}

// logged has a run's log also sent to a channel.
func logged(cfg *processor.Config) lines {
	written := make(lines, 10_000)
	cfg.Logger = slog.New(slog.NewTextHandler(written, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return written
}

// joinedAs returns the instance id with which a run has joined.
func joinedAs(tb testing.TB, written lines) string {
	tb.Helper()
	line := awaitLine(tb, written, "joining the group")
	return regexp.MustCompile(`instance_id=(\S*)`).FindStringSubmatch(line)[1]
}

// Proves that a process whose instance id was chosen for it, and turns out to be
// another's, does without it and goes on.
func TestInstanceOfAnotherHost(t *testing.T) {
	w := newWorld(t, 2)
	cfg := w.config()
	written := logged(&cfg)
	start(t, newProcessor(t, cfg, texts(appendSink{})))
	id := joinedAs(t, written)
	w.produce(0, numbered("a", 10)...)
	w.waitFor(`select count(*) from appended`, "10")
	other := w.impostor(id)
	awaitLine(t, written, "going on as a dynamic member")
	if again := joinedAs(t, written); again != `""` {
		t.Errorf("it has joined again as %s", again)
	}
	other.CloseAllowingRebalance() // which does not leave: its session ends
	for p := range int32(2) {
		w.produce(p, numbered(fmt.Sprint("b", p, "-"), 10)...)
	}
	w.waitFor(`select count(*) from appended`, "30")
	w.effects(30)
}

// Proves that a process whose configured instance id is another's ends with an
// error that says so, and does not fight for it; and that a second pipeline in one
// process is refused it at the start (case A10).
func TestInstanceIsConfiguredTwice(t *testing.T) {
	w := newWorld(t, 2)
	cfg := w.config()
	cfg.Kafka.InstanceID = "one"
	written := logged(&cfg)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- newProcessor(t, cfg, texts(appendSink{})).Run(ctx) }()
	awaitLine(t, written, "claimed")
	second := newProcessor(t, cfg, texts(appendSink{})).Run(ctx)
	if second == nil || !strings.Contains(second.Error(), "kafka.instance_id: each process of group") {
		t.Errorf("the second pipeline: %v", second)
	}
	w.impostor("one")
	err := await(t, ended, "the end of the one whose id was taken")
	if err == nil || !strings.Contains(err.Error(), `instance id "one" is used by another member of group`) {
		t.Errorf("the first pipeline: %v", err)
	}
}

// Proves that a static member which is stopped leaves the group, so that others
// need not wait for its session to end.
func TestStaticMemberLeaves(t *testing.T) {
	w := newWorld(t, 2)
	for _, id := range []string{"one", processor.InstanceAuto} {
		cfg := w.config()
		cfg.Kafka.InstanceID = id
		written := logged(&cfg)
		r := start(t, newProcessor(t, cfg, texts(appendSink{})))
		awaitLine(t, written, "claimed")
		if n, state := w.GroupMembers(t, w.group); n != 1 {
			t.Fatalf("%s: while it runs the group is %s with %d members", id, state, n)
		}
		r.finish()
		if n, state := w.GroupMembers(t, w.group); n != 0 {
			t.Errorf("%s: after the stop the group is %s with %d members", id, state, n)
		}
	}
}

// Proves that a partition which a member has let go of has an owner again,
// although the member was killed before it could join for the second rebalance of
// a cooperative group, and came back under its instance id. The member must not
// be the group's leader, whose return the client looks after by itself, and be
// the only one that lets go of something: the first to join leads, and of two
// members with equal shares the sticky balancer takes from the
// one whose id comes first.
func TestKilledBetweenTwoRebalances(t *testing.T) {
	w := newWorld(t, 4)
	member := func(id string) {
		cfg := w.config()
		cfg.Kafka.InstanceID = id
		cfg.Kafka.SessionTimeout = patience // nobody is helped by the end of a session
		start(t, newProcessor(t, cfg, texts(appendSink{})))
	}
	member("b")
	w.waitFor(`select count(*) from consumer_offset where owner is not null`, "4")
	victim := w.process(t, "INSTANCE=a", "STEP=released", "NTH=1", "SESSION=60s")
	waitLine(t, victim, `claimed`)
	waitLine(t, victim, `claimed`)
	member("c")
	waitLine(t, victim, `^AT released`)
	victim.Kill()
	w.process(t, "INSTANCE=a", "SESSION=60s")
	for p := range int32(4) {
		w.produce(p, numbered(fmt.Sprint("p", p, "-"), 10)...)
	}
	w.waitFor(`select sum(next_offset) from consumer_offset`, "40")
	w.effects(40)
}

// Proves that brokers which do not know the consumer protocol are refused at the
// start: the client alone would fall back to the classic one without a word.
func TestConsumerProtocolIsUnknown(t *testing.T) {
	client := processortest.Kafka(t, processortest.With(kfake.MaxVersions(kversion.V3_7_0()))).Client
	w := newWorldOn(t, client, 1)
	cfg := w.config()
	cfg.Kafka.GroupProtocol = processor.GroupProtocolConsumer
	err := tryToEnd(t, newProcessor(t, cfg, texts(appendSink{})))
	if err == nil || !strings.Contains(err.Error(), "config: kafka.group_protocol: these brokers do not know it") {
		t.Errorf("the start says: %v", err)
	}
}
