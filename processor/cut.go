package processor

import (
	"fmt"
	"sync"
)

// A verification cuts the connection at each step of the batch transaction. The
// steps are counted in sends, which is what the client writes in one go: a
// statement, or several that are pipelined. So nothing has to know which
// statements a sink makes, and none is forgotten.

// cutPlace says where at a send the connection is cut.
type cutPlace int

// The places of a cut, in the order in which they are tried.
const (
	// cutBefore: nothing of the send leaves.
	cutBefore cutPlace = iota
	// cutInside: half of it leaves, which of pipelined statements may be some.
	cutInside
	// cutSent: all of it leaves, and no answer is waited for. What the server
	// makes of a COMMIT is open then.
	cutSent
	// cutAnswered: the server has answered, and the answer is not read. A COMMIT
	// is done then.
	cutAnswered
	cutPlaces = iota
)

// cutPoint is a step of the protocol at which the connection is cut: the send,
// counted from 1 which is BEGIN, and the place.
type cutPoint struct {
	send  int
	place cutPlace
}

// next is the point that is tried after p.
func (p cutPoint) next() cutPoint {
	if p.place++; p.place == cutPlaces {
		return cutPoint{send: p.send + 1}
	}
	return p
}

// cutter cuts the connections of a run: at each try of a chosen batch one point
// further, until the batch is through. A try that ends before its point, because
// a message is at fault, leaves the point to the next one.
//
// The workers of its run are one after the other, so there is one transaction at
// a time.
type cutter struct {
	// chosen says which batches are cut.
	chosen func(BatchInfo) bool

	mu     sync.Mutex
	armed  bool
	hit    bool // the point was struck in the try before
	point  cutPoint
	sweeps int // batches that were cut
	cuts   int
	struck map[cutPoint]int
	commit [cutPlaces]int // cuts at COMMIT, by place
}

func newCutter(chosen func(BatchInfo) bool) *cutter {
	return &cutter{chosen: chosen, point: cutPoint{send: 1}, struck: map[cutPoint]int{}}
}

// hooks watches the tries.
func (c *cutter) hooks(h Hooks) Hooks {
	h.Step = func(s Step, b BatchInfo) {
		if s == StepBegin {
			c.begin(c.chosen(b))
		}
	}
	h.Committed = func(BatchInfo) { c.through() }
	h.Resolved = func(_ BatchInfo, committed bool) {
		if committed {
			c.through()
		}
	}
	return h
}

// begin arms the cutter for one try.
func (c *cutter) begin(chosen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hit {
		c.point = c.point.next()
	}
	// A batch that was begun is cut to its end.
	enough := c.point == cutPoint{send: 1} && c.sweeps > 1 && c.cuts > maxCuts
	c.armed, c.hit = chosen && !enough, false
}

// maxCuts is how many cuts are enough, where the sink makes many statements.
const maxCuts = 2000

// through ends the work on a batch.
func (c *cutter) through() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed || c.hit {
		c.sweeps++
	}
	c.armed, c.hit, c.point = false, false, cutPoint{send: 1}
}

// strike reports whether the n-th send of the transaction is to be cut, and
// where.
func (c *cutter) strike(n int, commit bool) (cutPlace, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed || n != c.point.send {
		return 0, false
	}
	// After either of the last two places COMMIT is most likely done, so that only
	// one of them can be tried on a batch: they take turns.
	if commit && c.point.place == cutSent && c.sweeps%2 == 1 {
		c.point.place = cutAnswered
	}
	c.armed, c.hit = false, true
	c.struck[c.point]++
	c.cuts++
	if commit {
		c.commit[c.point.place]++
	}
	return c.point.place, true
}

// CutReport is what a verification has cut.
type CutReport struct {
	// Points is how many different points were cut, Cuts how often in all,
	// Batches in how many batch transactions, of which each was cut at all of its
	// points.
	Points  int `json:"points"`
	Cuts    int `json:"cuts"`
	Batches int `json:"batches"`
	// Sends is how many sends the longest of the transactions had.
	Sends int `json:"sends"`
	// Commits are those of the cuts that were at COMMIT.
	Commits CommitCuts `json:"commits"`
}

// CommitCuts is how often the connection was cut before COMMIT, inside of the
// message, after it, when nobody knows what the server makes of it, and when the
// server had answered, so that the batch was committed and nobody knew.
type CommitCuts struct {
	Before   int `json:"before"`
	Inside   int `json:"inside"`
	Sent     int `json:"sent"`
	Answered int `json:"answered"`
}

// report tells what was cut. The error says that a point was missed, so that the
// run has not proven what it should.
func (c *cutter) report() (CutReport, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := CutReport{Points: len(c.struck), Cuts: c.cuts, Batches: c.sweeps, Commits: CommitCuts{c.commit[cutBefore], c.commit[cutInside], c.commit[cutSent], c.commit[cutAnswered]}}
	for p := range c.struck {
		r.Sends = max(r.Sends, p.send)
	}
	for p := (cutPoint{send: 1}); p.send < r.Sends; p = p.next() {
		if c.struck[p] == 0 {
			return r, fmt.Errorf("processor: verify: send %d was never cut at place %d", p.send, p.place)
		}
	}
	if c.commit[cutBefore] == 0 || c.commit[cutInside] == 0 || c.commit[cutSent]+c.commit[cutAnswered] == 0 {
		return r, fmt.Errorf("processor: verify: COMMIT was not cut everywhere: %v", c.commit)
	}
	return r, nil
}
