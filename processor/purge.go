package processor

import (
	"context"
	"log/slog"
	"time"

	"github.com/oncestream/oncestream/offsets"
)

// walksPerRetention is how often the purge goes around the whole table within
// the time that a key is kept: so a key stays a tenth longer than it must, and
// each block is read ten times in a key's life to find that out.
const walksPerRetention = 10

// purgeKeys purges old keys now and then until ctx ends. A failure is logged,
// and the next time comes anyway: that old keys stay a little longer harms
// nobody. All processes of a group do this; the ledger lets one at a time.
func (e *engine) purgeKeys(ctx context.Context) {
	keep := e.cfg.Keys
	for keep.Retain > 0 {
		keys, err := e.purgeOnce(ctx)
		if err != nil && ctx.Err() == nil {
			e.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "old keys could not be purged; will try again",
				slog.Duration("pause", keep.PurgeEvery), slog.Any("reason", err))
			if e.cfg.Hooks.Retrying != nil {
				e.cfg.Hooks.Retrying("purge", err, keep.PurgeEvery)
			}
		}
		if keys > 0 {
			e.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "purged old keys", slog.Int64("keys", keys))
		}
		if sleep(ctx, keep.PurgeEvery) != nil {
			return
		}
	}
}

// purgeRest is how many times as long the purge rests as it has worked: one that
// never rests makes the slowest batches beside it several times as slow.
const purgeRest = 4

// purgeOnce walks its share of the table, and on as long as there is much to
// purge.
func (e *engine) purgeOnce(ctx context.Context) (keys int64, err error) {
	p := offsets.Purge{Retain: e.cfg.Keys.Retain, Idle: e.cfg.Keys.PurgeEvery / 2}
	for passed := int64(0); ; {
		began := time.Now()
		purged, err := e.ledger.Purge(ctx, e.pool, p)
		if err != nil || purged.Busy {
			return keys, err
		}
		keys, passed, p.Idle = keys+purged.Keys, passed+purged.Blocks, 0
		if purged.Keys > 0 {
			call(e.cfg.Hooks.Purged, purged.Keys)
		}
		if !purged.More && passed >= e.cfg.Keys.share(purged.Table) {
			return keys, nil
		}
		if err := sleep(ctx, purgeRest*time.Since(began)); err != nil {
			return keys, err
		}
	}
}

// share is how many of the table's blocks must be passed each time.
func (k Keys) share(blocks int64) int64 {
	walks := walksPerRetention * k.PurgeEvery.Seconds() / k.Retain.Seconds()
	return int64(min(1, walks) * float64(blocks))
}
