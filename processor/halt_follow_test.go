package processor_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
)

// Proves that a partition which is halted at a message, as the policy says (case
// E13), goes on behind it without a restart once a person has skipped it, and
// that the account says what was left out.
func TestHaltedAtAMessageIsSkipped(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 10)...)
	w.produce(0, processortest.Values("\xff")...)
	w.produce(0, numbered("n", 10)...)
	s := startHalting(w, appendSink{}, func(cfg *processor.Config) { cfg.Policy.OnError = processor.HaltPartition })
	h := w.awaitHalt(s, "decode", 10, 11, "skip FILE --partition 0 --to-offset 11")
	if h.Offset != 10 {
		t.Errorf("halted at %d, want 10", h.Offset)
	}
	w.decide(offsets.Skip, 0, h.To)
	w.next(0, 21)
	s.finish()
	w.effects(20)
	if got := w.db.Value(`select records || ' ' || skipped || ' ' || dead_letters from consumer_offset`); got != "20 1 0" {
		t.Errorf("records, skipped, dead letters: %s", got)
	}
}

// Proves that a partition which is halted because a table is missing is opened
// where it stands once the table is back; opened too early it halts anew, with
// the same code.
func TestHaltedForTheSetUpIsOpened(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 10)...)
	w.db.Exec(`alter table appended rename to gone`)
	s := startHalting(w, appendSink{}, nil)
	for range 2 {
		w.awaitHalt(s, processor.CodeSystemic, 0, 0, "rewind FILE --partition 0 --to-offset 0")
		w.decide(offsets.Rewind, 0, 0)
		await(t, s.reopened, "the partition to be claimed again")
	}
	w.awaitHalt(s, processor.CodeSystemic, 0, 0, "rewind FILE --partition 0 --to-offset 0")
	w.db.Exec(`alter table gone rename to appended`)
	w.decide(offsets.Rewind, 0, 0)
	w.next(0, 10)
	s.finish()
	w.effects(10)
}

// Proves that a row which is opened by hand, without a change of its epoch, is
// seen as well, and that RunToEnd keeps answering ErrHalted.
func TestHaltedRowIsOpenedByHand(t *testing.T) {
	w := newWorld(t, 1)
	w.produce(0, numbered("m", 10)...)
	w.db.Exec(`alter table appended rename to gone`)
	if err := tryToEnd(t, newProcessor(t, w.config(), texts(appendSink{}))); err == nil || !strings.Contains(err.Error(), processor.ErrHalted.Error()) {
		t.Errorf("to the end: %v", err)
	}
	s := startHalting(w, appendSink{}, nil)
	w.awaitHalt(s, processor.CodeSystemic, 0, 0, "rewind FILE --partition 0 --to-offset 0")
	w.db.Exec(`alter table gone rename to appended`)
	w.db.Exec(`update consumer_offset set state = 'open', reason = null`)
	w.next(0, 10)
	s.finish()
	w.effects(10)
}

// Proves that the dead letters of a batch whose COMMIT had no answer count once
// toward the rate, whether the batch is found aborted and done again or found
// committed: 80 of the last 200 are below the half that is allowed, counted twice
// they would not be, and not counted at all one more of the last 101 would be.
func TestDeadLettersOfAnUnknownCommitCountOnce(t *testing.T) {
	for _, fault := range []processortest.CommitFault{processortest.CutInside, processortest.CutAfter} {
		t.Run(string(fault), func(t *testing.T) {
			w := newWorld(t, 1)
			var armed atomic.Bool
			faults := processortest.NewCommitFaults(time.Second, func(int) processortest.CommitFault {
				if armed.CompareAndSwap(true, false) {
					return fault
				}
				return processortest.NoFault
			})
			s := startHalting(w, appendSink{}, func(cfg *processor.Config) {
				cfg.Batch.MaxRecords, cfg.Batch.MaxWait = 100, 2*time.Second
				cfg.Policy.DeadLetterWindow, cfg.Policy.MaxDeadLetterRate = 100, 0.5
				cfg.Postgres.Configure = func(c *pgxpool.Config) error {
					faults.Install(&c.ConnConfig.Config)
					return nil
				}
			})
			w.produce(0, numbered("good", 100)...)
			w.next(0, 100)
			armed.Store(true)
			w.produce(0, slices.Concat(slices.Repeat(processortest.Values("\xff"), 80), numbered("m", 20))...)
			w.next(0, 200)
			w.produce(0, processortest.Values("\xff")...)
			w.awaitHalt(s, processor.CodeDeadLetterRate, 200, 200, "rewind FILE --partition 0 --to-offset 200")
			s.finish()
			w.effects(120)
			if got := w.db.Value(`select dead_letters from consumer_offset`); faults.Struck()[fault] != 1 || got != "80" {
				t.Errorf("struck %v, %s dead letters", faults.Struck(), got)
			}
		})
	}
}
