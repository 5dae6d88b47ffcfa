package offsets_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// TestSabotage proves that the checkers can fail: each of these breaks one line of
// the protocol, and the promise that it guards must be seen broken. The ledger
// as it is passes the same runs: see TestSimulation.
func TestSabotage(t *testing.T) {
	on := func(sabotage func(*offsets.Ledger)) func(*tablestest.DB, *offsets.Ledger) {
		return func(_ *tablestest.DB, l *offsets.Ledger) { sabotage(l) }
	}
	for _, test := range []struct {
		name     string
		sabotage func(*tablestest.DB, *offsets.Ledger)
		caughtBy []string
	}{
		{"b: the advance without the old offset", on((*offsets.Ledger).SabotageOffsetCondition), []string{"I1", "I2", "I4"}},
		{"c: the advance's row count not looked at", on((*offsets.Ledger).SabotageRowCount), []string{"I1", "I2", "I4"}},
		{"e: the result of the key insert ignored", on((*offsets.Ledger).SabotageInsertResult), []string{"I2"}},
		{"k: keys scoped by partition", func(db *tablestest.DB, l *offsets.Ledger) {
			l.SabotageKeyScope()
			db.Exec(offsets.KeysByPartition)
		}, []string{"I2"}},
		{"a blind look, without a primary key", func(db *tablestest.DB, l *offsets.Ledger) {
			l.BlindLook()
			db.Exec(withoutGuard)
		}, []string{"I2"}},
		{"a change that leaves the epoch", on((*offsets.Ledger).SabotageChangeEpoch), []string{"I1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := tablestest.New(t)
			db.Exec(worldTables)
			ledger := newLedger(t, db)
			test.sabotage(db, ledger)
			caught := simulateSeeds(t, db, ledger, make(map[string]bool))
			if caught == nil {
				t.Fatal("the sabotage was not noticed")
			}
			if !startsWith(caught.Error(), test.caughtBy) {
				t.Errorf("want a violation of %v, got %v", test.caughtBy, caught)
			}
			first, _, _ := strings.Cut(caught.Error(), "\n")
			t.Log(first)
		})
	}
}

// simulateSeeds runs simulations without a model, so that only the promises are
// checked, and returns the first violation.
func simulateSeeds(t *testing.T, db *tablestest.DB, ledger *offsets.Ledger, seen map[string]bool) error {
	t.Helper()
	conns := connections(t, db, simWorkers)
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := newSimulation(t.Context(), db, ledger, conns, func(_ string, n int) int { return random.IntN(n) })
		s.seen = seen
		err := s.run(t.Context(), 40)
		if v, ok := errors.AsType[violation](err); ok {
			return fmt.Errorf("%w (seed %d)", v, seed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return nil
}

// TestSimulation proves that the runs which catch the sabotages pass without, and
// that they come to everything that can happen. TestModel makes the same steps.
func TestSimulation(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(worldTables)
	seen := make(map[string]bool)
	if err := simulateSeeds(t, db, newLedger(t, db), seen); err != nil {
		t.Error(err)
	}
	for _, what := range []string{
		"batch", "batch fenced", "batch went back", "reclaim", "reclaim fenced", "reclaim went back",
		"fresh", "producer", "conflict", "end 0", "end 1", "end 2", "end 5", "end 6", "end 7",
		"claim refused", "rewind", "rewind refused", "skip", "skip refused", "adopt", "adopt refused",
	} {
		if !seen[what] {
			t.Errorf("it never came to %q: the runs prove less than they should", what)
		}
	}
}

// TestBlindLook proves that the look before a copy is a shortcut and nothing more:
// where it finds nothing, the primary key refuses the same keys, and every answer
// and every promise is the same.
func TestBlindLook(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(worldTables)
	ledger := newLedger(t, db)
	ledger.BlindLook()
	seen := make(map[string]bool)
	if err := simulateSeeds(t, db, ledger, seen); err != nil {
		t.Error(err)
	}
	if !seen["contested"] || !seen["producer"] {
		t.Errorf("no batch was contested: %v", seen)
	}
}

func startsWith(text string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(text, p+":") {
			return true
		}
	}
	return false
}

// TestSabotageIdentity (h) shows that it is the identity that keeps a claim from a
// topic which was created again: by its name alone it is claimed at an offset
// whose records it never had, and all below it are lost.
func TestSabotageIdentity(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	old, recreated := offsets.Identity{ClusterID: "c", TopicID: [16]byte{1}}, offsets.Identity{ClusterID: "c", TopicID: [16]byte{2}}
	if _, _, err := ledger.Claim(t.Context(), db.Pool, "A", old, []offsets.Assigned{{Partition: 0, Start: 100}}); err != nil {
		t.Fatal(err)
	}
	claims, refusals, err := ledger.Claim(t.Context(), db.Pool, "A", recreated, []offsets.Assigned{{Partition: 0}})
	if err != nil || len(claims) != 0 || len(refusals) != 1 || refusals[0].Code() != "topic_recreated" {
		t.Errorf("want a refusal, got %v %v %v", claims, refusals, err)
	}
	ledger.SabotageIdentity()
	claims, refusals, err = ledger.Claim(t.Context(), db.Pool, "A", recreated, []offsets.Assigned{{Partition: 0}})
	if err != nil || len(claims) != 1 || len(refusals) != 0 || claims[0].Next != 100 {
		t.Errorf("want the sabotaged claim to lose 100 records, got %v %v %v", claims, refusals, err)
	}
}
