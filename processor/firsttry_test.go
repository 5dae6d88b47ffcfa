package processor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// tries notes how a sink was called: F for a first try, C for a careful one,
// with the number of messages.
type tries struct {
	mu   sync.Mutex
	list []string
}

func (t *tries) note(ctx context.Context, messages int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kind := "C"
	if schema.IsFirstTry(ctx) {
		kind = "F"
	}
	t.list = append(t.list, fmt.Sprint(kind, messages))
}

func (t *tries) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.list, " ")
}

// Proves that a batch whose rows are contested is applied again at once, by a
// call that is told of no first try, with its effects once and no message
// blamed; and that where this is frequent, first tries are given up.
func TestContestedRows(t *testing.T) {
	w := newWorld(t, 1)
	const batches = 8
	w.produce(0, numbered("m", batches)...)
	var seen tries
	var twice int
	cfg := w.config()
	cfg.Batch.MaxRecords = 1
	cfg.Hooks.Committed = func(b processor.BatchInfo) {
		if b.Contested {
			twice++
		}
	}
	cfg.Hooks.RolledBack = func(_ processor.BatchInfo, err error) {
		if !schema.IsContested(err) {
			t.Errorf("rolled back because of %v", err)
		}
	}
	cfg.Hooks.Retrying = func(what string, err error, pause time.Duration) {
		t.Errorf("%s is tried again after %v because of %v", what, pause, err)
	}
	toEnd(t, newProcessor(t, cfg, texts(sinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
		seen.note(ctx, len(batch))
		err := appendSink{}.Apply(ctx, tx, batch)
		if schema.IsFirstTry(ctx) {
			return errors.Join(err, schema.Contested(errors.New("as asked")))
		}
		return err
	}))))
	w.effects(batches)
	if got, want := seen.String(), strings.Repeat("F1 C1 ", 5)+"C1 C1 C1"; got != want || twice != 5 {
		t.Errorf("tries %s, %d done twice, want %s", got, twice, want)
	}
}

// Proves that a message which the first try names stands alone in isolation, so
// that it need not be searched for, and that no call in isolation is a first try.
func TestFirstTryNames(t *testing.T) {
	for bad, want := range map[int]string{1: "F40 C5 C1 C34", 2: "F40 C5 C1 C34 C17"} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			w := newWorld(t, 1)
			w.db.Exec(`alter table appended add constraint good check (id not like 'bad%')`)
			records := numbered("m", 40)
			for i := range bad {
				records[5*i+5].Value = fmt.Appendf(nil, "bad%d", i)
			}
			w.produce(0, records...)
			var seen tries
			toEnd(t, newProcessor(t, w.config(), texts(sinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
				seen.note(ctx, len(batch))
				err := appendSink{}.Apply(ctx, tx, batch)
				for _, m := range batch {
					if err != nil && schema.IsFirstTry(ctx) && strings.HasPrefix(m.Body, "bad") {
						return schema.Faultf(m.Record, schema.ReasonCheck, "%w", err)
					}
				}
				return err
			}))))
			w.effects(len(records) - bad)
			if got := seen.String(); !strings.HasPrefix(got, want) || strings.Count(got, "F") != 1 {
				t.Errorf("tries %s, want %s first", got, want)
			}
			if got := strings.Count(w.deadLetters(), "check 23514 good"); got != bad {
				t.Errorf("%d dead letters:\n%s", got, w.deadLetters())
			}
		})
	}
}
