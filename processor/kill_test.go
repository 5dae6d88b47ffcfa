package processor_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
)

func waitLine(tb testing.TB, p *processortest.Process, pattern string) []string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	match, err := p.WaitLine(ctx, regexp.MustCompile(pattern))
	must(tb, err)
	return match
}

func terminated(tb testing.TB, p *processortest.Process) {
	tb.Helper()
	must(tb, p.Terminate())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	code, err := p.Wait(ctx)
	must(tb, err)
	if code != 0 {
		tb.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// Proves that a process killed at any step of the transaction leaves all or
// nothing, and that its successor goes on from there: one effect a record, no
// gap, no double (case A04, faults 1 and 3; also A01's kill).
func TestKillAtEachStep(t *testing.T) {
	t.Parallel()
	for _, step := range []processor.Step{processor.StepBegin, processor.StepAdmit, processor.StepApply, processor.StepCommit, processor.StepPublish} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.produce(0, numbered("m", 1000)...)
			victim := w.process(t, "STEP="+string(step), "NTH=3")
			at := waitLine(t, victim, `^AT \S+ partition 0 offsets (\d+) to (\d+)$`)
			victim.Kill()
			stored := w.db.Value(`select next_offset from consumer_offset`)
			if want := map[bool]string{false: at[1], true: at[2]}[step == processor.StepPublish]; stored != want {
				t.Errorf("killed before step %s of [%s, %s): the stored offset is %s, want %s", step, at[1], at[2], stored, want)
			}
			heir := w.process(t)
			w.waitFor(`select next_offset from consumer_offset`, "1000")
			terminated(t, heir)
			w.effects(1000)
			if got, want := w.account(), "records 1000, producer duplicates 0, redelivered 0, offsets 1000"; got != want {
				t.Errorf("account: %s, want %s", got, want)
			}
			replayed(t, newProcessor(t, w.config(), texts(appendSink{})))
		})
	}
}

// Proves that a process which was stopped in the middle of its transaction, for
// longer than its session and its transaction may last, holds its partition up
// no longer than that, finds itself fenced when it wakes up, says so, and goes
// on cleanly (case A08, faults 4 and 5).
func TestZombie(t *testing.T) {
	t.Parallel()
	for _, step := range []processor.Step{processor.StepBegin, processor.StepApply, processor.StepCommit} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.produce(0, numbered("m", 500)...)
			zombie := w.process(t, "STEP="+string(step), "NTH=2")
			waitLine(t, zombie, `^AT `)
			must(t, zombie.Pause())
			heir := w.process(t)
			w.waitFor(`select next_offset from consumer_offset`, "500")
			w.produce(0, numbered("n", 500)...)
			w.waitFor(`select next_offset from consumer_offset`, "1000")
			must(t, zombie.Resume())
			waitLine(t, zombie, `lost ownership of`)
			w.produce(0, numbered("o", 500)...)
			w.waitFor(`select next_offset from consumer_offset`, "1500")
			terminated(t, heir)
			w.produce(0, numbered("p", 500)...) // it may serve again
			w.waitFor(`select next_offset from consumer_offset`, "2000")
			terminated(t, zombie)
			w.effects(2000)
			replayed(t, newProcessor(t, w.config(), texts(appendSink{})))
		})
	}
}

// Proves that a partition whose process vanishes without a word is taken over
// by others while everything is under load, again and again (faults 1 and 2).
func TestKillsUnderLoad(t *testing.T) {
	w := newWorld(t, 4)
	const rounds, each = 4, 500
	running := []*processortest.Process{w.process(t), w.process(t)}
	for round := range rounds {
		for p := range int32(4) {
			w.produce(p, numbered(fmt.Sprintf("r%dp%d-", round, p), each)...)
			w.produce(p, numbered(fmt.Sprintf("r%dp0-", round), each/10)...) // duplicates, also across partitions
		}
		victim := running[round%2]
		waitLine(t, victim, `claimed`)
		victim.Kill()
		running[round%2] = w.process(t)
	}
	w.waitFor(`select sum(next_offset) from consumer_offset`, strconv.Itoa(rounds*(4*each+4*each/10)))
	for _, p := range running {
		terminated(t, p)
	}
	w.effects(rounds * 4 * each)
	replayed(t, newProcessor(t, w.config(), texts(appendSink{})))
}

// Proves that a second process joins and leaves without loss or double while
// the first goes on, and that the effects of a partition keep the order of its
// offsets although it leaves and returns (cases A13 and H03).
func TestPartitionsLeaveAndReturn(t *testing.T) {
	w := newWorld(t, 2)
	for p := range int32(2) {
		w.produce(p, numbered(fmt.Sprintf("p%d-", p), 20_000)...)
	}
	cfg := w.config()
	cfg.Batch.MaxRecords = 200
	start(t, newProcessor(t, cfg, texts(appendSink{})))
	for range 4 {
		guest := w.process(t)
		waitLine(t, guest, `claimed`)
		terminated(t, guest)
	}
	w.waitFor(`select sum(next_offset) from consumer_offset`, "40000")
	w.effects(40_000)
	if got, want := w.account(), "records 40000, producer duplicates 0, redelivered 0, offsets 40000"; got != want {
		t.Errorf("account: %s, want %s", got, want)
	}
}
