package processor

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/oncestream/oncestream/offsets"
)

// A halted partition is a person's to decide, and the person decides in the
// ledger: a command moves the position and raises the epoch, or opens the row.
// The process looks for that, in one query for all that it has halted, and only
// while something is; a worker whose row has changed claims it again and goes on
// from there, or halts anew if the cause is still there. A notification would be
// missed by a connection that was lost, and not every pooler passes it on.

// standstill is a partition that this process has halted, and as what the ledger
// knows it.
type standstill struct {
	Halt
	at offsets.Halted
}

// followEvery is how soon a decision is seen.
const followEvery = time.Second

// follow has halted workers go on when a person has decided, until ctx ends.
func (e *engine) follow(ctx context.Context) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		decided, err := e.decided(ctx)
		if err != nil && ctx.Err() == nil {
			e.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "the halted partitions cannot be looked at; will try again", slog.Any("reason", err))
		}
		for _, p := range decided {
			if w := e.worker(p); w != nil {
				w.wake()
			}
		}
	}
}

// decided returns the halted partitions that are not as they were.
func (e *engine) decided(ctx context.Context) ([]int32, error) {
	var halted []offsets.Halted
	for _, h := range e.standstills() {
		halted = append(halted, h.at)
	}
	if len(halted) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Postgres.TransactionTimeout)
	defer cancel()
	return e.ledger.Decided(ctx, e.pool, halted)
}

func (e *engine) halted(h standstill) {
	e.mu.Lock()
	e.halts[h.Partition] = h
	e.mu.Unlock()
	call(e.cfg.Hooks.Halted, h.Halt)
}

// standstills returns what this process has halted, by partition.
func (e *engine) standstills() []standstill {
	e.mu.Lock()
	defer e.mu.Unlock()
	var halts []standstill
	for _, h := range e.halts {
		halts = append(halts, h)
	}
	slices.SortFunc(halts, func(a, b standstill) int { return int(a.Partition - b.Partition) })
	return halts
}

// reopen forgets that the partition is halted.
func (e *engine) reopen(partition int32) {
	e.mu.Lock()
	h, ok := e.halts[partition]
	delete(e.halts, partition)
	e.mu.Unlock()
	if ok {
		call(e.cfg.Hooks.Reopened, h.Halt)
	}
}

// wake has a halted worker look again. One waiting signal stands for all.
func (w *worker) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// rest waits until the halted partition is to be claimed again, or the intake
// ends.
func (w *worker) rest(intake context.Context) {
	select {
	case <-intake.Done():
		return
	case <-w.woken:
	}
	w.log.LogAttrs(intake, slog.LevelInfo, "the halted partition was changed in the ledger; claiming it again", slog.Int64("offset", w.claim.Next))
	w.e.reopen(w.partition)
}

// tellWentBack tells, once the partition is claimed again, how far the database
// had gone back: before is the claim that it had lost.
func (w *worker) tellWentBack(before offsets.Claim) {
	if !w.wentBack {
		return
	}
	w.wentBack = false
	w.log.LogAttrs(w.e.ctx, slog.LevelInfo, "claimed again after the database went back",
		slog.Int64("offset", w.claim.Next), slog.Int64("before", before.Next), slog.Int64("epoch", w.claim.Epoch), slog.Int64("epoch_before", before.Epoch))
	if w.e.cfg.Hooks.WentBack != nil {
		w.e.cfg.Hooks.WentBack(w.e.cfg.Kafka.Topic, before, w.claim)
	}
}
