package registry

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/oncestream/oncestream/schema"
)

// cache keeps what was loaded by id. Concurrent look-ups of one id load once.
//
//	loaded               kept for ever
//	unavailable          not kept: the next look-up loads again
//	every other error    kept for a while, so that a thousand records with an
//	                     unknown id do not make a thousand requests
type cache[S any] struct {
	load       func(ctx context.Context, id uint32) (S, error)
	unknownFor time.Duration
	mu         sync.Mutex
	entries    map[uint32]*entry[S]
}

// entry is one id's. Its fields are set before done is closed and not after.
type entry[S any] struct {
	done   chan struct{}
	loaded S
	err    error
	until  time.Time // when err is forgotten; zero while it is loaded and where there is none
	// abandoned says that the look-up which loaded it was cancelled, which says
	// nothing to those that waited for it.
	abandoned bool
}

func newCache[S any](unknownFor time.Duration, load func(context.Context, uint32) (S, error)) *cache[S] {
	return &cache[S]{load: load, unknownFor: unknownFor, entries: make(map[uint32]*entry[S])}
}

// get returns what is loaded for id. An error is either unavailable, or says
// what is wrong with the id.
func (c *cache[S]) get(ctx context.Context, id uint32) (S, error) {
	for {
		e, mine := c.entry(id)
		if mine {
			c.fill(ctx, id, e)
			return e.loaded, e.err
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return e.loaded, schema.Unavailable(ctx.Err())
		}
		if !e.abandoned {
			return e.loaded, e.err
		}
	}
}

// entry returns the id's entry, and whether it is new, for the caller to fill.
func (c *cache[S]) entry(id uint32) (e *entry[S], mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e = c.entries[id]; e != nil && !e.expired() {
		return e, false
	}
	e = &entry[S]{done: make(chan struct{})}
	c.entries[id] = e
	return e, true
}

func (e *entry[S]) expired() bool { return !e.until.IsZero() && time.Now().After(e.until) }

var errPanicked = errors.New("reading the schema panicked")

// fill loads. It settles the entry even where the load panics: those that wait
// for it would wait for ever.
func (c *cache[S]) fill(ctx context.Context, id uint32, e *entry[S]) {
	e.err = errPanicked
	defer c.settle(id, e)
	e.loaded, e.err = c.load(ctx, id)
	if e.err != nil && ctx.Err() != nil {
		e.err, e.abandoned = schema.Unavailable(ctx.Err()), true
	}
}

// manyEntries is from how many entries on the ones that have expired are looked
// for: a topic of another framing gives a new id with every record.
const manyEntries = 1000

func (c *cache[S]) settle(id uint32, e *entry[S]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(e.done)
	switch {
	case e.err == nil:
	case schema.IsUnavailable(e.err):
		delete(c.entries, id)
	default:
		e.until = time.Now().Add(c.unknownFor)
		if len(c.entries) >= manyEntries {
			maps.DeleteFunc(c.entries, func(_ uint32, e *entry[S]) bool { return e.expired() })
		}
	}
}
