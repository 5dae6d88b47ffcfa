package processor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/oncestream/oncestream/offsets"
)

// watchPause is how long a worker that has nothing to pass may not know that it
// lost its claim.
const watchPause = 2 * time.Second

// watchClaims compares the claims of this process with the ledger now and then,
// until ctx ends. An advance does that too, but there is none at the end of the
// log: after a failover that has lost the last commits, or a rewind by a person,
// what is to be done again would wait for the next record, which may never come.
func (e *engine) watchClaims(ctx context.Context) {
	for sleep(ctx, watchPause) == nil {
		// A look that fails is made again; an outage is told by those who work.
		if err := e.checkClaims(ctx); err != nil && ctx.Err() == nil {
			e.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "the claims could not be compared with the ledger", slog.Any("reason", err))
		}
	}
}

// checkClaims has each worker whose claim does not hold claim again. A worker
// that has records learns it from its next advance, whichever comes first.
func (e *engine) checkClaims(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	standing := e.standing()
	if len(standing) == 0 {
		return nil
	}
	var claims []offsets.Claim
	for _, claim := range standing {
		claims = append(claims, *claim)
	}
	ended, err := e.ledger.Check(ctx, e.pool, claims)
	for w, claim := range standing {
		// A claim that was advanced or taken anew since the look is left alone.
		if reason := ended[claim.Partition]; reason != nil && w.stands.Load() == claim {
			w.queue.fail(reason)
		}
	}
	return err
}

// standing returns the claims under which this process reads. A claim is among
// them only after what brought it there was committed, so the ledger can never
// be behind one, unless it went back.
func (e *engine) standing() map[*worker]*offsets.Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	claims := map[*worker]*offsets.Claim{}
	for _, w := range e.workers {
		if claim := w.stands.Load(); claim != nil {
			claims[w] = claim
		}
	}
	return claims
}

// stand makes c the worker's claim, for itself and for those who watch.
func (w *worker) stand(c offsets.Claim) {
	w.claim = c
	w.stands.Store(&c)
}

// lose gives the claim up, because it is known to be ours no more.
func (w *worker) lose(ctx context.Context, reason error) {
	w.held = false
	w.stands.Store(nil)
	about := []slog.Attr{slog.Int64("offset", w.claim.Next), slog.Any("reason", reason)}
	if w.wentBack = errors.Is(reason, offsets.ErrWentBack); w.wentBack {
		w.e.forget(w.partition)
		w.log.LogAttrs(ctx, slog.LevelWarn, "the database went back: a restore or a failover has lost commits, effects, keys and offset together; "+
			"claiming again and doing again what was lost, while the group lists the partition", about...)
	} else {
		w.log.LogAttrs(ctx, slog.LevelWarn, "lost ownership of the partition; dropping what was read and claiming again while the group lists it", about...)
	}
	call2(w.e.cfg.Hooks.Fenced, w.e.cfg.Kafka.Topic, w.claim)
}
