package registry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncestream/oncestream/schema"
)

// loader counts loads and answers as it is told.
type loader struct {
	loads atomic.Int64
	err   error
	wait  chan struct{} // nil, or what a load waits for
}

func (l *loader) load(ctx context.Context, id uint32) (uint32, error) {
	l.loads.Add(1)
	if l.wait != nil {
		select {
		case <-l.wait:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return id * 2, l.err
}

// An unknown id is kept for the time that was set, to the nanosecond; a schema
// is kept for good.
func TestCacheKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &loader{err: errors.New("unknown")}
		c := newCache(time.Minute, l.load)
		look := func(want int64) {
			t.Helper()
			_, _ = c.get(t.Context(), 1)
			if n := l.loads.Load(); n != want {
				t.Errorf("%d loads, want %d", n, want)
			}
		}
		look(1)
		<-time.After(time.Minute)
		look(1)
		<-time.After(1)
		look(2)
		l.err = nil
		<-time.After(time.Hour)
		look(3)
		<-time.After(1000 * time.Hour)
		look(3)
	})
}

// Look-ups of one id at the same time load once, and all have the answer.
func TestCacheLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &loader{wait: make(chan struct{})}
		c := newCache(time.Minute, l.load)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if got, err := c.get(t.Context(), 21); got != 42 || err != nil {
					t.Errorf("%d, %v", got, err)
				}
			})
		}
		synctest.Wait()
		close(l.wait)
		wg.Wait()
		if n := l.loads.Load(); n != 1 {
			t.Errorf("%d loads", n)
		}
	})
}

// The first look-up is cancelled while a second one waits for it: the second
// one loads itself. A third one that gives up leaves the others alone.
func TestCacheAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &loader{wait: make(chan struct{})}
		c := newCache(time.Minute, l.load)
		first, cancelFirst := context.WithCancel(t.Context())
		third, cancelThird := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		cancelled := func(ctx context.Context) {
			if _, err := c.get(ctx, 1); !schema.IsUnavailable(err) || !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		}
		wg.Go(func() { cancelled(first) })
		synctest.Wait()
		wg.Go(func() { cancelled(third) })
		wg.Go(func() {
			if got, err := c.get(t.Context(), 1); got != 2 || err != nil {
				t.Errorf("%d, %v", got, err)
			}
		})
		synctest.Wait()
		cancelThird()
		synctest.Wait()
		cancelFirst()
		synctest.Wait()
		close(l.wait)
		wg.Wait()
		if n := l.loads.Load(); n != 2 {
			t.Errorf("%d loads, want 2", n)
		}
	})
}

// A load that panics leaves no entry that later look-ups would wait for.
func TestCachePanics(t *testing.T) {
	c := newCache(time.Minute, func(context.Context, uint32) (int, error) { panic("no") })
	func() {
		defer func() { _ = recover() }()
		_, _ = c.get(t.Context(), 1)
		t.Error("the panic was swallowed")
	}()
	if _, err := c.get(t.Context(), 1); !errors.Is(err, errPanicked) {
		t.Errorf("the next look-up: %v", err)
	}
}

// Entries of unknown ids do not pile up: a payload of another framing has a new
// id in every record.
func TestCacheForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &loader{err: errors.New("unknown")}
		c := newCache(time.Second, l.load)
		for id := range uint32(20 * manyEntries) {
			_, _ = c.get(t.Context(), id)
			<-time.After(time.Millisecond)
		}
		if n := len(c.entries); n > 2*manyEntries {
			t.Errorf("%d entries are kept", n)
		}
	})
}
