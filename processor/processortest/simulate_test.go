package processortest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// applied is a sink of a function.
type applied func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error

func (f applied) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
	return f(ctx, tx, batch)
}

// visits counts texts in a table, one statement a message, as a user might.
func visits(sql string) func(*tablestest.DB) processor.Pipeline[string] {
	return simulated(func(*tablestest.DB) applied {
		return func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
			for _, m := range batch {
				if _, err := tx.Exec(ctx, sql, m.Body); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

func simulated(sink func(*tablestest.DB) applied) func(*tablestest.DB) processor.Pipeline[string] {
	return func(db *tablestest.DB) processor.Pipeline[string] {
		return processor.Pipeline[string]{
			Decode: schema.Text(), Key: schema.ByPosition[string](), Sink: sink(db),
		}
	}
}

const visitTable = `create table visit (at bigint generated always as identity, name text primary key, n int not null, seen timestamptz)`

// visitors are records of which many have the same text.
func visitors(partitions int32) map[int32][]schema.Record {
	records := map[int32][]schema.Record{}
	for p := range partitions {
		for n := range 60 {
			records[p] = append(records[p], schema.Record{Value: fmt.Appendf(nil, "visitor %d", n%7)})
		}
	}
	return records
}

const count = `insert into visit (name, n) values ($1, 1) on conflict (name) do update set n = visit.n + 1`

// Proves that a handler which counts within its transaction passes whatever is
// done to it, on one partition and on several, and that all faults are made.
func TestSimulate(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			Simulate(t, seed, visits(count), Workload{Tables: visitTable, Records: visitors(1 + 2*int32(seed%2)), Rounds: 8})
		})
	}
	for _, fault := range SimulatedFaults() {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			Simulate(t, 1, visits(count), Workload{Tables: visitTable, Records: visitors(2), Rounds: 4}, fault)
		})
	}
}

// Proves that handlers that are not safe are found: one that counts on a
// connection of its own, one that remembers in memory what it has done, one that
// writes the time, one that goes on where its predecessor's number ends.
func TestSimulateFinds(t *testing.T) {
	for name, broken := range map[string]struct {
		pipeline func(*tablestest.DB) processor.Pipeline[string]
		workload Workload
	}{
		"outside of the transaction": {simulated(func(db *tablestest.DB) applied {
			return func(ctx context.Context, _ pgx.Tx, batch []schema.Message[string]) error {
				for _, m := range batch {
					if _, err := db.Pool.Exec(ctx, count, m.Body); err != nil {
						return err
					}
				}
				return nil
			}
		}), Workload{Tables: visitTable}},
		"in memory": {simulated(func(*tablestest.DB) applied {
			seen := map[string]int{}
			return func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
				for _, m := range batch {
					seen[m.Body]++
					if _, err := tx.Exec(ctx, `insert into visit (name, n) values ($1, $2) on conflict (name) do update set n = excluded.n`, m.Body, seen[m.Body]); err != nil {
						return err
					}
				}
				return nil
			}
		}), Workload{Tables: visitTable}},
		"the time": {
			visits(`insert into visit (name, n, seen) values ($1, 1, now()) on conflict (name) do update set n = visit.n + 1`),
			Workload{Tables: visitTable},
		},
		"a number of a sequence": {
			visits(`insert into visit (name, n) values ($1 || nextval('business'), 1)`),
			Workload{Tables: visitTable + "; create sequence business"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			broken.workload.Records, broken.workload.Rounds = visitors(1), 6
			err := simulate(t, 3, broken.pipeline, broken.workload, []SimulatedFault{SimulateCrash, SimulateLostCommit})
			if err == nil || !strings.Contains(err.Error(), "not what they are without") {
				t.Errorf("found %v, want a difference in the tables", err)
			}
		})
	}
}
