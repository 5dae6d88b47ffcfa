package processor_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// standing is a run whose halts a test follows.
type standing struct {
	*running
	p                *processor.Processor
	halted, reopened chan processor.Halt
}

// startHalting runs until the test ends and tells of its halts. change, if set,
// changes the configuration.
func startHalting(w *world, sink processor.Sink[string], change func(*processor.Config)) *standing {
	w.tb.Helper()
	s := &standing{halted: make(chan processor.Halt, 100), reopened: make(chan processor.Halt, 100)}
	cfg := w.config()
	cfg.Hooks.Halted = func(h processor.Halt) { s.halted <- h }
	cfg.Hooks.Reopened = func(h processor.Halt) { s.reopened <- h }
	if change != nil {
		change(&cfg)
	}
	s.p = newProcessor(w.tb, cfg, texts(sink))
	s.running = start(w.tb, s.p)
	return s
}

// awaitHalt waits for a halt with the code and the range in doubt, and checks
// that it is told everywhere with the same remedy: in the hook, in the ledger and
// in Health.
func (w *world) awaitHalt(s *standing, code string, from, to int64, remedy string) processor.Halt {
	w.tb.Helper()
	h := await(w.tb, s.halted, "the halt")
	if h.Code != code || h.From != from || h.To != to {
		w.tb.Errorf("halted with %s [%d, %d), want %s [%d, %d): %v", h.Code, h.From, h.To, code, from, to, h.Err)
	}
	if !strings.HasPrefix(h.Remedy, "oncestream offsets "+remedy+" --reason") {
		w.tb.Errorf("the remedy is %s, want %s", h.Remedy, remedy)
	}
	w.waitFor(fmt.Sprintf(`select state || ' ' || split_part(reason, ':', 1) || ' ' || (position('%s' in reason) > 0) from consumer_offset where partition = %d`, h.Remedy, h.Partition), "halted "+code+" true")
	for _, p := range s.p.Health().Partitions {
		if p.Partition == h.Partition && (p.State != processor.StateHalted || p.Code != code || p.Remedy != h.Remedy) {
			w.tb.Errorf("its health is %+v", p)
		}
	}
	if !s.p.Health().Degraded {
		w.tb.Error("the health is not degraded")
	}
	return h
}

// decide changes a position as a person does, with the offset of a remedy.
func (w *world) decide(action offsets.Action, partition int32, to int64) {
	w.tb.Helper()
	change := offsets.Change{Partition: partition, Action: action, To: to}
	if action == offsets.Adopt {
		topic, err := processor.InspectTopic(w.tb.Context(), w.config().Kafka)
		must(w.tb, err)
		change.Identity = offsets.Identity{ClusterID: topic.ClusterID, TopicID: topic.ID}
	}
	ledger := offsets.New(offsets.Options{Schema: w.db.Schema, Group: w.group, Topic: w.topic})
	_, err := ledger.Apply(w.tb.Context(), w.db.Pool, []offsets.Change{change}, offsets.Note{By: "ada", Reason: "a test"}, patience)
	must(w.tb, err)
}

// next waits until the partition's stored offset is want.
func (w *world) next(partition int32, want int64) {
	w.tb.Helper()
	w.waitFor(fmt.Sprintf(`select state || ' ' || next_offset from consumer_offset where partition = %d`, partition), "open "+strconv.FormatInt(want, 10))
}

// Proves case B01, stopped: the 200 records of a topic that was created again are
// neither skipped by the old offset nor read before a person has adopted it;
// then each has its effect, in the same run.
func TestRecreatedWhileStopped(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 1000)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.DeleteTopic(t, w.topic)
	w.CreateTopic(t, w.topic, 1)
	w.produce(0, numbered("n", 200)...)
	s := startHalting(w, appendSink{}, nil)
	w.awaitHalt(s, processor.CodeTopicRecreated, 0, 1000, "adopt FILE --partition 0 --to-offset earliest")
	w.effects(1000)
	w.decide(offsets.Adopt, 0, 0)
	await(t, s.reopened, "the partition to be claimed again")
	w.next(0, 200)
	s.finish()
	w.total(1200)
	replayed(t, newProcessor(t, w.config(), texts(appendSink{})))
}

// Proves case B01, running: the topic is deleted and created again under a
// processor that reads it. It stays alive, halts each partition, reads nothing of
// the new topic by the old offsets, and follows the adoption without a restart.
func TestRecreatedWhileRunning(t *testing.T) {
	w := newWorld(t, 2)
	w.produce(0, numbered("m", 500)...)
	w.produce(1, numbered("o", 500)...)
	s := startHalting(w, appendSink{}, nil)
	w.next(0, 500)
	w.next(1, 500)
	w.DeleteTopic(t, w.topic)
	w.CreateTopic(t, w.topic, 2)
	w.produce(0, numbered("n", 100)...)
	w.produce(1, numbered("q", 700)...)
	for range 2 {
		h := await(t, s.halted, "the halt")
		if h.Code != processor.CodeTopicRecreated || h.From != 0 || h.To != 500 {
			t.Errorf("halted with %s [%d, %d): %v", h.Code, h.From, h.To, h.Err)
		}
	}
	w.effects(1000)
	w.decide(offsets.Adopt, 0, 0)
	w.next(0, 100) // the other partition is still halted
	if got := w.db.Value(`select state from consumer_offset where partition = 1`); got != "halted" {
		t.Errorf("the partition that nobody has decided about is %s", got)
	}
	w.decide(offsets.Adopt, 1, 0)
	w.next(1, 700)
	s.finish()
	w.total(1800)
}

// total checks the number of effects, each once; offsets of two topics have no
// order.
func (w *world) total(want int) {
	w.tb.Helper()
	if got := w.db.Value(`select count(*) || ' ' || count(distinct id) from appended`); got != fmt.Sprintf("%d %d", want, want) {
		w.tb.Errorf("effects, messages: %s, want %d", got, want)
	}
}

// Proves case B12: a log that retention has emptied beyond the stored offset
// halts the partition with the lost range before anything is fetched; skipped by
// a person, the partition goes on and accounts for what was left out.
func TestEverythingRemoved(t *testing.T) {
	w := newWorld(t, 2)
	for p := range int32(2) {
		w.produce(p, numbered(fmt.Sprint("m", p, "-"), 100)...)
	}
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	for p := range int32(2) {
		w.produce(p, numbered(fmt.Sprint("n", p, "-"), 900)...)
	}
	w.DeleteRecords(t, w.topic, 0, 1000)
	s := startHalting(w, appendSink{}, nil)
	h := w.awaitHalt(s, processor.CodeRetentionPassed, 100, 1000, "skip FILE --partition 0 --to-offset 1000")
	if !strings.Contains(h.Err.Error(), "lost [100, 1000)") {
		t.Errorf("the reason does not name the range: %v", h.Err)
	}
	w.next(1, 1000) // the other one goes on
	w.decide(offsets.Skip, 0, 1000)
	w.produce(0, numbered("later", 10)...)
	w.next(0, 1010)
	s.finish()
	w.effects(100 + 1000 + 10)
	if got := w.db.Value(`select records || ' ' || skipped from consumer_offset where partition = 0`); got != "110 900" {
		t.Errorf("records, skipped: %s", got)
	}
}

// Proves that a stored offset beyond the end of the log halts the partition, and
// that what lies there is read once it is set back.
func TestBeyondTheEnd(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 100)...)
	toEnd(t, newProcessor(t, w.config(), texts(appendSink{})))
	w.db.Exec(`update consumer_offset set next_offset = 500, leader_epoch = -1`)
	s := startHalting(w, appendSink{}, nil)
	w.awaitHalt(s, processor.CodeBeyondEnd, 100, 500, "rewind FILE --partition 0 --to-offset 100")
	w.decide(offsets.Rewind, 0, 100)
	w.produce(0, numbered("n", 50)...)
	w.next(0, 150)
	s.finish()
	w.effects(150)
}
