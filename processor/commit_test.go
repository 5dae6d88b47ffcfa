package processor_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
)

// Proves that a COMMIT whose answer is lost is resolved to what has really
// happened, committed or not, and that nothing is lost or doubled either way
// (case D06, faults 9 to 12, I10). Every third COMMIT is struck.
func TestCommitAnswerLost(t *testing.T) {
	t.Parallel()
	for fault, committed := range map[processortest.CommitFault]bool{
		processortest.CutBefore: false, processortest.CutInside: false, processortest.CutAfter: true, processortest.HoldAnswer: true,
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			for p := range int32(2) {
				w.produce(p, numbered("m", 1500)...)
				w.produce(p, numbered(fmt.Sprint("p", p), 500)...)
			}
			faults := processortest.NewCommitFaults(3*time.Second, func(n int) processortest.CommitFault {
				if n%3 == 0 && n < 40 {
					return fault
				}
				return processortest.NoFault
			})
			cfg := w.config()
			cfg.Batch.MaxRecords = 100
			cfg.Postgres.TransactionTimeout = time.Second // the patience that HoldAnswer exceeds
			cfg.Postgres.Configure = func(c *pgxpool.Config) error {
				faults.Install(&c.ConnConfig.Config)
				return nil
			}
			var unknown, wrong, resolved atomic.Int64
			cfg.Hooks.CommitUnknown = func(processor.BatchInfo, error) { unknown.Add(1) }
			cfg.Hooks.Resolved = func(_ processor.BatchInfo, was bool) {
				resolved.Add(1)
				if was != committed {
					wrong.Add(1)
				}
			}
			toEnd(t, newProcessor(t, cfg, texts(appendSink{})))
			if faults.Struck()[fault] < 3 || unknown.Load() == 0 || resolved.Load() != unknown.Load() || wrong.Load() != 0 {
				t.Errorf("struck %v; %d commits unknown, %d resolved, %d of them wrongly", faults.Struck(), unknown.Load(), resolved.Load(), wrong.Load())
			}
			w.effects(2500)
			replayed(t, newProcessor(t, w.config(), texts(appendSink{})))
		})
	}
}
