package offsets_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// exploration is all that can be reached from the beginning.
type exploration struct {
	states []protocolState
	at     map[protocolState]int32
	parent []int32
	by     []string  // the step from the parent
	before [][]int32 // of each state: from where a step that is no fault leads to it
	taken  map[string]int
	bad    string // the first violation, and how it comes about
}

// explore tries everything, the shortest ways first, until a violation.
func explore(broken sabotage, budget protocolBudget) *exploration {
	e := &exploration{at: map[protocolState]int32{}, taken: map[string]int{}}
	e.find(protocolState{left: budget}, -1, "start")
	for n := int32(0); n < int32(len(e.states)) && e.bad == ""; n++ {
		for _, s := range stepsFrom(e.states[n], broken) {
			e.taken[strings.TrimRight(s.name, " :AB")]++
			to := e.find(s.to, n, s.name)
			if !s.fault {
				e.before[to] = append(e.before[to], n)
			}
			if s.violation != "" {
				e.bad = s.violation + "\n\t" + strings.Join(append(e.way(n), s.name), "\n\t")
				break
			}
		}
	}
	return e
}

// find returns the number of a state, a new one where it is new.
func (e *exploration) find(s protocolState, parent int32, by string) int32 {
	if n, ok := e.at[s]; ok {
		return n
	}
	n := int32(len(e.states))
	e.at[s] = n
	e.states, e.parent, e.by, e.before = append(e.states, s), append(e.parent, parent), append(e.by, by), append(e.before, nil)
	return n
}

// way is how a state comes about.
func (e *exploration) way(n int32) (names []string) {
	for ; n > 0; n = e.parent[n] {
		names = append(names, e.by[n])
	}
	slices.Reverse(names)
	return names
}

// stuck returns a state from which the end cannot be reached although nothing
// goes wrong any more and there are claims left; empty where there is none.
func (e *exploration) stuck() string {
	reaches := make([]bool, len(e.states))
	var todo []int32
	for n := range e.states {
		if e.states[n].done() {
			reaches[n], todo = true, append(todo, int32(n))
		}
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range e.before[n] {
			if !reaches[from] {
				reaches[from], todo = true, append(todo, from)
			}
		}
	}
	for n := range e.states {
		if !reaches[n] && e.states[n].left.claims > 0 {
			return fmt.Sprintf("%+v\n\t%s", e.states[n], strings.Join(e.way(int32(n)), "\n\t"))
		}
	}
	return ""
}

// protocolFaults is what may go wrong in one run of the model.
var protocolFaults = protocolBudget{crashes: 1, losses: 2, restores: 1, rewinds: 1, claims: 4}

// Proves on all states of the model that no record is lost, no key has two
// effects and the transactions form one chain, whatever goes wrong and in which
// order; that the end can always still be reached; and that the model comes to
// the states that it is for: a model that cannot lose anything proves nothing.
func TestProtocol(t *testing.T) {
	e := explore(sabotage{}, protocolFaults)
	if e.bad != "" {
		t.Fatalf("after %d states: %s", len(e.states), e.bad)
	}
	if way := e.stuck(); way != "" {
		t.Errorf("the end cannot be reached: %s", way)
	}
	for _, name := range []string{
		"fenced", "back", "fenced by another holder of the epoch", "found committed", "found aborted", "reclaim fenced",
		"server commits", "server aborts", "watched", "crash", "rewind", "restore",
	} {
		if e.taken[name] == 0 {
			t.Errorf("%q never happens", name)
		}
	}
	for name, is := range map[string]func(protocolState) bool{
		"two members hold one epoch": func(s protocolState) bool {
			a, b := s.members[0], s.members[1]
			return a.phase == holding && b.phase == holding && a.epoch == b.epoch
		},
		"a zombie waits beside the owner's transaction": func(s protocolState) bool {
			return s.members[0].phase == holding && s.members[1].tx.phase == open && s.members[0].epoch < s.members[1].epoch
		},
		"an open transaction passes a key that was seen": func(s protocolState) bool {
			return s.members[0].tx.to == protocolEnd && s.members[0].tx.phase == open && s.members[0].tx.keys == 0
		},
		"a COMMIT is under way while its member asks what became of it": func(s protocolState) bool {
			return s.members[0].phase == unknown && s.members[0].tx.phase == inFlight
		},
		"everything was handled after a restore": func(s protocolState) bool { return s.done() && s.left.restores == 0 },
	} {
		if !slices.ContainsFunc(e.states, is) {
			t.Errorf("it never comes to it that %s", name)
		}
	}
	t.Logf("%d states, %d kinds of steps: %v", len(e.states), len(e.taken), slices.Sorted(maps.Keys(e.taken)))
}

// fewerFaults are enough for each sabotage.
var fewerFaults = protocolBudget{crashes: 1, losses: 1, restores: 1, rewinds: 1, claims: 4, givenUp: 1}

// Proves that a member at the end of the log must look at its row now and then:
// if not, nobody reads again what an operator has rewound.
func TestProtocolUnwatched(t *testing.T) {
	way := explore(sabotage{unwatched: true}, fewerFaults).stuck()
	if !strings.Contains(way, "rewind") {
		t.Errorf("want the model to be stuck after a rewind, got %q", way)
	}
}

// Proves that a claim which is given up before the drain (f) wastes work although
// nothing goes wrong: one owner is fenced by nobody but itself. TestProtocolSabotage
// shows that it costs no safety.
func TestProtocolGivenUp(t *testing.T) {
	quiet := protocolBudget{claims: 1, givenUp: 1}
	if n := explore(sabotage{}, quiet).taken["fenced"]; n > 0 {
		t.Errorf("a single owner is fenced in %d states", n)
	}
	if explore(sabotage{givenUpEarly: true}, quiet).taken["fenced"] == 0 {
		t.Error("giving up early wastes nothing")
	}
}

// Proves that the model can fail: what is unsafe is found, with the invariant
// that it breaks; and shows which of the mechanisms are not needed for safety,
// because the compare of the offset covers for them.
func TestProtocolSabotage(t *testing.T) {
	for _, c := range []struct {
		name   string
		broken sabotage
		breaks string // empty: nothing
	}{
		{"a: resumed from Kafka's offset, which is committed first", sabotage{kafkaFirst: true}, "I1"},
		{"b: the advance without the old offset", sabotage{noOffset: true}, "I"},
		{"c: the advance's row count not looked at", sabotage{noRowCount: true}, "I4"},
		{"d: a COMMIT without an answer taken for an abort", sabotage{errorIsAbort: true}, ""},
		{"d: a COMMIT without an answer taken for a commit", sabotage{errorIsCommit: true}, ""},
		{"d and b: taken for an abort, and the offset not compared", sabotage{errorIsAbort: true, noOffset: true}, "I"},
		{"d and b: taken for a commit, and the offset not compared", sabotage{errorIsCommit: true, noOffset: true}, "I"},
		{"e: the result of the key insert ignored", sabotage{admitIgnored: true}, "I2"},
		{"f: the claim given up before the drain", sabotage{givenUpEarly: true}, ""},
		{"j: keys in a transaction of their own", sabotage{keysApart: true}, "I1"},
		{"a claim that reads the position before it waits", sabotage{staleClaim: true}, ""},
		{"the claim moved before COMMIT has answered", sabotage{movedBeforeAnswer: true}, ""},
		{"the offset in a transaction of its own, first", sabotage{offsetOutsideOfTx: true}, "I1"},
		{"the effects in a transaction of their own, first", sabotage{effectsOutsideOfTx: true}, "I2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := explore(c.broken, fewerFaults)
			if got, _, _ := strings.Cut(e.bad, ":"); c.breaks == "" && got != "" || !strings.HasPrefix(got, c.breaks) {
				t.Errorf("want a violation of %q, got %s", c.breaks, e.bad)
			}
			t.Logf("%d states, %s", len(e.states), orDefault(e.bad, "no violation"))
		})
	}
}

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
