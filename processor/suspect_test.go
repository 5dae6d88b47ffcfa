package processor_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// suspectingSink appends, counts its tries, and suspects as it is told.
type suspectingSink struct {
	appendSink
	tries    *atomic.Int64
	suspects func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) ([]int, error)
}

func (s suspectingSink) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
	s.tries.Add(1)
	return s.appendSink.Apply(ctx, tx, batch)
}

func (s suspectingSink) Suspects(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) ([]int, error) {
	return s.suspects(ctx, tx, batch)
}

// Proves that a sink's suspicions decide nothing but the number of tries: one
// that is right spares nearly all of them; and one that is wrong, suspects
// everybody, names no message of the batch, fails, breaks the transaction or
// panics, ends in the same effects and dead letters.
func TestSuspects(t *testing.T) {
	bad := map[int]bool{7: true, 8: true, 100: true, 255: true, 399: true}
	honest := func(_ context.Context, _ pgx.Tx, batch []schema.Message[string]) (places []int, _ error) {
		for i, m := range batch {
			if strings.HasPrefix(m.Body, "bad") {
				places = append(places, i)
			}
		}
		return places, nil
	}
	type suspects = func(context.Context, pgx.Tx, []schema.Message[string]) ([]int, error)
	tries := map[string]int64{}
	for name, ask := range map[string]suspects{
		"honest": honest,
		"nobody": func(context.Context, pgx.Tx, []schema.Message[string]) ([]int, error) { return nil, nil },
		"wrong":  func(context.Context, pgx.Tx, []schema.Message[string]) ([]int, error) { return []int{9, 3, 9}, nil },
		"everybody": func(_ context.Context, _ pgx.Tx, batch []schema.Message[string]) (all []int, _ error) {
			for i := range batch {
				all = append(all, i)
			}
			return all, nil
		},
		"strangers": func(_ context.Context, _ pgx.Tx, batch []schema.Message[string]) ([]int, error) {
			return []int{-1, len(batch)}, nil
		},
		"broken": func(ctx context.Context, tx pgx.Tx, _ []schema.Message[string]) ([]int, error) {
			_, err := tx.Exec(ctx, "select no_such_column")
			return nil, err
		},
		"panic": func(context.Context, pgx.Tx, []schema.Message[string]) ([]int, error) { panic("as asked") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.db.Exec(`alter table appended add constraint good check (id not like 'bad%')`)
			records := numbered("m", 400)
			var want []string
			for i := range records {
				if bad[i] {
					records[i].Value = fmt.Appendf(nil, "bad%d", i)
					want = append(want, fmt.Sprintf("%d check 23514 good", i))
				}
			}
			w.produce(0, records...)
			var n atomic.Int64
			toEnd(t, newProcessor(t, w.config(), texts(suspectingSink{tries: &n, suspects: ask})))
			if got := w.deadLetters(); got != strings.Join(want, "\n") {
				t.Errorf("dead letters:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
			}
			w.effects(len(records) - len(bad))
			tries[name] = n.Load()
		})
	}
	if most := int64(2*len(bad) + 3); tries["honest"] > most || tries["nobody"] <= most {
		t.Errorf("tries %v; want at most %d with the right suspicions, and more without", tries, most)
	}
	if tries["broken"] != tries["panic"] {
		t.Errorf("tries %v; want what fails to be as if it was not asked", tries)
	}
}
