package offsets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// simulation lets workers claim, batch, crash and lose answers on two partitions,
// one step after the other, and asks after each step whether the promise holds.
// Every choice is made by choose, so that rapid can shrink a run and a seed can
// repeat it.
type simulation struct {
	choose  func(what string, n int) int
	db      *tablestest.DB
	ledger  *offsets.Ledger
	oracle  *oracle // nil with a sabotaged ledger, which has no model
	log     [simPartitions][]offsets.Entry
	workers []*simWorker
	topics  [simPartitions]byte  // the topic that is there now, which may be created again
	highest [simPartitions]int64 // next_offset as last seen
	history []string
	seen    map[string]bool // what has happened, to prove that everything does
}

const (
	simPartitions = 2
	simRecords    = 40
	simWorkers    = 3
	simKeys       = 8
)

// simWorker remembers what a worker would: claims that may be outdated, and the
// open transaction.
type simWorker struct {
	name  string
	conn  *pgx.Conn
	tx    pgx.Tx
	held  map[int32]offsets.Claim
	reads map[int32]byte // the topic whose records it has
	moved offsets.Claim  // what the open transaction moves its claim to
	keys  map[[16]byte]bool
}

// violation is what a checker reports: the promise was broken, or an answer was
// not the model's.
type violation struct{ what string }

func (v violation) Error() string { return v.what }

func newSimulation(ctx context.Context, db *tablestest.DB, ledger *offsets.Ledger, conns []*pgx.Conn, choose func(string, int) int) *simulation {
	s := &simulation{choose: choose, db: db, ledger: ledger, seen: make(map[string]bool)}
	for i, conn := range conns {
		// What the run before has left open would keep its rows locked. Where
		// there is nothing open, this is a warning.
		if _, err := conn.Exec(ctx, "rollback"); err != nil {
			panic(err)
		}
		s.workers = append(s.workers, &simWorker{name: fmt.Sprint("w", i), conn: conn, held: make(map[int32]offsets.Claim), reads: make(map[int32]byte)})
	}
	db.Exec(emptyWorld)
	for p := range s.log {
		for o := range simRecords {
			e := offsets.Entry{Key: keyOf(fmt.Sprint("k", choose("key", simKeys))), Partition: int32(p), Offset: int64(o), PayloadSum: 1}
			if choose("other payload", 20) == 0 {
				e.PayloadSum = 2
			}
			s.log[p] = append(s.log[p], e)
		}
	}
	return s
}

// run does the steps and returns the first violation, with what led to it.
func (s *simulation) run(ctx context.Context, steps int) error {
	for range steps {
		err := s.step(ctx)
		if err == nil {
			err = s.check()
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, strings.Join(s.history, "\n"))
		}
	}
	return nil
}

func (s *simulation) note(format string, args ...any) {
	s.history = append(s.history, fmt.Sprintf(format, args...))
}

func (s *simulation) see(what string, err error) {
	switch {
	case errors.Is(err, offsets.ErrFenced):
		what += " fenced"
	case errors.Is(err, offsets.ErrWentBack):
		what += " went back"
	}
	s.seen[what] = true
}

// step is one step of one worker, or of the world.
func (s *simulation) step(ctx context.Context) error {
	w := s.workers[s.choose("worker", len(s.workers))]
	p := int32(s.choose("partition", simPartitions))
	if w.tx != nil {
		return s.end(ctx, w)
	}
	switch what := s.choose("step", 27); {
	case what < 13:
		return s.batch(ctx, w, p)
	case what < 16:
		return s.claim(ctx, w, p)
	case what < 19:
		return s.reclaim(ctx, w, p)
	case what < 20:
		s.note("%s forgets everything", w.name)
		clear(w.held)
	case what < 21:
		s.note("snapshot")
		s.db.Exec(takeSnapshot)
		s.oracle.snapshot()
	case what < 22:
		return s.restore(ctx)
	case what < 25:
		return s.change(ctx, w, p)
	default:
		s.topics[p]++
		s.note("the topic of partition %d is created again: %d", p, s.topics[p])
		if s.choose("adopted at once", 2) == 0 {
			return s.apply(ctx, w, offsets.Change{Partition: p, Action: offsets.Adopt, To: s.highest[p], Identity: identity(s.topics[p])})
		}
	}
	return nil
}

// identity is a topic of the simulation.
func identity(topic byte) offsets.Identity {
	return offsets.Identity{ClusterID: "c", TopicID: [16]byte{15: topic}}
}

// busy reports whether a statement on the partition would have to wait, for the
// steps are taken one after the other.
func (s *simulation) busy(p int32) bool {
	for _, w := range s.workers {
		if w.tx != nil && w.moved.Partition == p {
			return true
		}
	}
	return false
}

func (s *simulation) claim(ctx context.Context, w *simWorker, p int32) error {
	if s.busy(p) {
		return nil
	}
	claims, refusals, err := s.ledger.Claim(ctx, w.conn, w.name, identity(s.topics[p]), []offsets.Assigned{{Partition: p}})
	if err != nil || len(claims)+len(refusals) != 1 {
		return violation{fmt.Sprintf("claim: %v %v %v", claims, refusals, err)}
	}
	s.note("%s claims: %+v %v", w.name, claims, refusals)
	if len(refusals) == 1 {
		s.seen["claim refused"] = true
		return s.oracle.refused(refusals[0])
	}
	w.held[p], w.reads[p] = claims[0], s.topics[p]
	return s.oracle.claimed(claims[0], s.topics[p])
}

func (s *simulation) reclaim(ctx context.Context, w *simWorker, p int32) error {
	c, holds := w.held[p]
	if s.busy(p) || !holds {
		return nil
	}
	next, err := s.ledger.Reclaim(ctx, w.conn, c)
	s.note("%s reclaims %+v: %+v %v", w.name, c, next, err)
	s.see("reclaim", err)
	w.held[p] = next
	if err != nil {
		delete(w.held, p)
	}
	return s.oracle.reclaimed(c, next, err)
}

// restore puts the tables back to the snapshot. All connections break, so that
// open transactions are rolled back; what the workers remember stays.
func (s *simulation) restore(ctx context.Context) error {
	s.note("restore")
	for _, w := range s.workers {
		if w.tx != nil {
			if err := w.tx.Rollback(ctx); err != nil {
				return err
			}
			w.tx, w.keys = nil, nil
			s.oracle.ended(w, false)
		}
	}
	s.db.Exec(restoreSnapshot)
	s.oracle.restore()
	s.highest = [simPartitions]int64{}
	return nil
}

// check asks the tables for every broken promise.
func (s *simulation) check() error {
	for _, row := range s.db.Rows(brokenPromises) {
		return violation{row[0]}
	}
	for _, row := range s.db.Rows("select partition, next_offset from consumer_offset") {
		var p int
		var next int64
		if _, err := fmt.Sscan(strings.Join(row, " "), &p, &next); err != nil {
			return err
		}
		if next < s.highest[p] {
			return violation{fmt.Sprintf("I4: next_offset of partition %d fell from %d to %d", p, s.highest[p], next)}
		}
		s.highest[p] = next
	}
	return s.oracle.compare(s.db)
}
