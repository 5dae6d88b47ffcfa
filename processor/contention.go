package processor

import (
	"errors"
	"math/bits"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// A batch writes its keys by a look and a copy. Where another partition brings
// one of them at the same moment, the copy ends in [offsets.ErrKeyContested], and
// the batch is done again with an insert, which waits for the other and takes its
// word. Keys that repeat within a partition are never contested: its batches come
// one after the other.
//
// The insert costs the server about one and a half times the copy. So the copy
// pays as long as fewer than one batch of three is contested; with more, the
// insert is chosen from the start.
//
// The same is done with rows that a sink writes by a way which cannot tell
// duplicates, see [schema.FirstTry]: where it answers [schema.Contested], the
// batch is done again and the sink is not told of a first try. Such rows are
// there already as a rule because their keys were purged.

// contention is how often the batches of a partition were contested.
type contention struct {
	// recent has a bit for each of the last 16 batches that were copied, set where
	// it was contested.
	recent uint16
	// inserts is how many batches are yet to be inserted from the start.
	inserts int
}

const (
	// contestedMany is how many contested ones of 16 are too many.
	contestedMany = 5
	// insertedRun is how many batches are then inserted. An insert does not tell
	// whether a copy would have been contested, so that the copy is tried again
	// after them: where it still is, 5 in 69 batches are done twice.
	insertedRun = 64
)

// contested tells of what was contested in a try, and learns from it.
func (a *attempt) contested(err error) (keys, rows bool) {
	keys, rows = errors.Is(err, offsets.ErrKeyContested), schema.IsContested(err)
	if !a.insert {
		a.contention.learn(keys)
	}
	if !a.careful {
		a.rows.learn(rows)
	}
	return keys, rows
}

// insert reports whether the next batch is to be inserted from the start.
func (c *contention) insert() bool {
	if c.inserts == 0 {
		return false
	}
	c.inserts--
	return true
}

// learn notes how a copy went.
func (c *contention) learn(contested bool) {
	c.recent <<= 1
	if contested {
		c.recent |= 1
	}
	if bits.OnesCount16(c.recent) >= contestedMany {
		c.recent, c.inserts = 0, insertedRun
	}
}
