package processortest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Workload is what a simulation runs on.
type Workload struct {
	// Tables is the SQL that makes the tables of the effects. They are found by
	// the search_path, as in the pipeline. Required.
	Tables string
	// Records are the records by partition, in the order of the log. Required.
	Records map[int32][]schema.Record
	// Compare are the queries whose answers must be those of an undisturbed run.
	// Defaults to the rows of every table, but for identity columns.
	Compare []string
	// Rounds is how many faults strike. Defaults to 12.
	Rounds int
}

// SimulatedFault is something that [Simulate] does to a run.
type SimulatedFault string

// The faults of a simulation.
const (
	// SimulateCrash ends the process at some step of a transaction.
	SimulateCrash SimulatedFault = "crash"
	// SimulateLostCommit leaves a COMMIT without an answer, done or not.
	SimulateLostCommit SimulatedFault = "lost commit"
	// SimulateLeave stops the process gracefully after some transactions.
	SimulateLeave SimulatedFault = "leave"
	// SimulateRival starts a second member, so that partitions move.
	SimulateRival SimulatedFault = "rival"
	// SimulateRewind has an operator rewind a partition to its beginning.
	SimulateRewind SimulatedFault = "rewind"
)

// SimulatedFaults are all of them.
func SimulatedFaults() []SimulatedFault {
	return []SimulatedFault{SimulateCrash, SimulateLostCommit, SimulateLeave, SimulateRival, SimulateRewind}
}

// Simulate shows that a pipeline's effects happen once, whatever befalls it: it
// runs the records once undisturbed, and once with faults, and fails the test
// unless both leave the same in the tables, and a replay finds nothing new. It is
// for handlers of one's own ([processor.Sink] as code); the sinks of this project
// are known to pass.
//
// pipeline is called for each start of a process, whose memory does not outlive
// it, with the schema of the run. The seed decides which faults strike and where; no faults means all of
// them. With one partition a seed repeats a run; with several, their transactions
// interleave as the machine has it. Kafka is in the process and PostgreSQL is a
// real one, so the time is real too.
func Simulate[T any](tb testing.TB, seed uint64, pipeline func(*tablestest.DB) processor.Pipeline[T], w Workload, faults ...SimulatedFault) {
	tb.Helper()
	if err := simulate(tb, seed, pipeline, w, faults); err != nil {
		tb.Errorf("processortest: simulate, seed %d: %v", seed, err)
	}
}

func simulate[T any](tb testing.TB, seed uint64, pipeline func(*tablestest.DB) processor.Pipeline[T], w Workload, faults []SimulatedFault) error {
	tb.Helper()
	if len(faults) == 0 {
		faults = SimulatedFaults()
	}
	if w.Rounds == 0 {
		w.Rounds = 12
	}
	undisturbed := newSimulation(tb, pipeline, w)
	undisturbed.send(1, 1)
	if err := undisturbed.toEnd(); err != nil {
		return fmt.Errorf("without any fault: %w", err)
	}
	s := newSimulation(tb, pipeline, w)
	s.random = rand.New(rand.NewPCG(seed, 0))
	for round := range w.Rounds {
		s.send(round+1, w.Rounds)
		fault := faults[s.random.IntN(len(faults))]
		if err := s.strike(fault); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(s.struck, ", "), err)
		}
	}
	if err := s.toEnd(); err != nil {
		return fmt.Errorf("after %s: %w", strings.Join(s.struck, ", "), err)
	}
	if differs := s.compare(undisturbed); differs != "" {
		return fmt.Errorf("after %s the tables are not what they are without:\n%s", strings.Join(s.struck, ", "), differs)
	}
	return s.replay()
}

// simulation is one run: a topic, a group and a schema of its own.
type simulation[T any] struct {
	tb       testing.TB
	kafka    *Cluster
	db       *tablestest.DB
	pipeline func(*tablestest.DB) processor.Pipeline[T]
	w        Workload
	random   *rand.Rand
	struck   []string
}

const simulatedTopic = "simulated"

func newSimulation[T any](tb testing.TB, pipeline func(*tablestest.DB) processor.Pipeline[T], w Workload) *simulation[T] {
	tb.Helper()
	last := int32(0)
	for p := range w.Records {
		last = max(last, p)
	}
	s := &simulation[T]{tb: tb, kafka: Kafka(tb, WithTopic(last+1, simulatedTopic)), db: tablestest.New(tb), pipeline: pipeline, w: w}
	s.db.Exec(w.Tables)
	return s
}

// send sends the records up to a part of them all, so that each fault has some to
// strike.
func (s *simulation[T]) send(part, of int) {
	s.tb.Helper()
	for p, all := range s.w.Records {
		if some := all[len(all)*(part-1)/of : len(all)*part/of]; len(some) > 0 {
			s.kafka.Produce(s.tb, simulatedTopic, p, some...)
		}
	}
}

// config has small batches, so that there is much to cut, and quick timeouts.
func (s *simulation[T]) config() processor.Config {
	return processor.Config{
		Group: simulatedTopic,
		Kafka: processor.Kafka{
			Brokers: s.kafka.Addrs(), Topic: simulatedTopic, Start: processor.Start{At: "earliest"}, SessionTimeout: 2 * time.Second, InstanceID: "none",
		},
		Postgres: processor.Postgres{
			URL: s.db.URL, Schema: s.db.Schema, LockTimeout: time.Second, IdleTimeout: 2 * time.Second, TransactionTimeout: 20 * time.Second,
		},
		Batch: processor.Batch{MaxRecords: 3}, DrainTimeout: 2 * time.Second,
		Retry:  processor.Retry{Initial: 5 * time.Millisecond, Max: 100 * time.Millisecond},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// simulatedPatience is how long a run to the end may take.
const simulatedPatience = time.Minute

func (s *simulation[T]) toEnd() error {
	p, err := processor.New(s.config(), s.pipeline(s.db))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.tb.Context(), simulatedPatience)
	defer cancel()
	return p.RunToEnd(ctx)
}

// replay proves that every key is known.
func (s *simulation[T]) replay() error {
	p, err := processor.New(s.config(), s.pipeline(s.db))
	if err != nil {
		return err
	}
	report, err := p.Replay(s.tb.Context(), processor.Range{})
	if err == nil && !report.Clean() {
		err = fmt.Errorf("%v: %+v", report, report.Examples)
	}
	return err
}

// compare returns what differs, nothing where all is the same.
func (s *simulation[T]) compare(undisturbed *simulation[T]) string {
	queries := s.w.Compare
	if len(queries) == 0 {
		queries = s.tables()
	}
	var differs []string
	for _, q := range queries {
		if got, want := s.db.Dump(q), undisturbed.db.Dump(q); got != want {
			differs = append(differs, fmt.Sprintf("%s\nwith the faults\n%s\nwithout\n%s", q, got, want))
		}
	}
	return strings.Join(differs, "\n")
}

// tables are queries of all rows of all tables of the effects, sorted, without
// the identity columns: the numbers of a sequence are not given back.
func (s *simulation[T]) tables() (queries []string) {
	ledger := []string{
		"call", "consumer_offset", "dead_letter", "duplicate_message", "environment", "environment_change", "handler", "key_floor",
		"offset_change", "outbox", "processed_message", "schema_version",
	}
	for _, row := range s.db.Rows(`
		select c.relname::text, string_agg(quote_ident(a.attname), ', ' order by a.attnum)
		from pg_class c join pg_attribute a on a.attrelid = c.oid
		where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
			and a.attnum > 0 and not a.attisdropped and a.attidentity = ''
		group by c.relname order by c.relname`) {
		if !slices.Contains(ledger, row[0]) {
			queries = append(queries, fmt.Sprintf("select %s from %q order by %[1]s", row[1], row[0]))
		}
	}
	return queries
}

// rewind is an operator's.
func (s *simulation[T]) rewind() error {
	ctx := s.tb.Context()
	ledger := offsets.New(offsets.Options{Schema: s.db.Schema, Group: simulatedTopic, Topic: simulatedTopic, Handler: simulatedTopic})
	progress, err := ledger.Progress(ctx, s.db.Pool)
	if err != nil || len(progress) == 0 {
		return err
	}
	p := progress[s.random.IntN(len(progress))]
	if p.Next == p.First {
		return nil
	}
	_, err = ledger.Apply(ctx, s.db.Pool, []offsets.Change{{Partition: p.Partition, Action: offsets.Rewind, To: p.First}},
		offsets.Note{By: "simulation", Reason: "to see that nothing happens twice"}, time.Second)
	if refused, ok := errors.AsType[*offsets.RefusedChange](err); ok {
		return fmt.Errorf("the rewind was refused: %w", refused)
	}
	return err
}
