package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// worker handles one partition for one assignment: an assignment that returns
// gets a new worker, so nothing polled under an old one can reach it.
//
// Its goroutine claims the partition, asks the source to read from the claim's
// position, and commits batch after batch; when the claim is superseded it
// starts over. It ends when it is stopped.
type worker struct {
	e         *engine
	partition int32
	queue     *queue
	log       *slog.Logger

	// stop ends the intake: the batch in work is finished, nothing new begins.
	stop context.CancelFunc
	// abort ends the transaction in work, too.
	abort context.CancelFunc
	// done is closed when the goroutine has ended; claim may be read then.
	done     chan struct{}
	woken    chan struct{} // while it is halted: to look again
	claim    offsets.Claim
	stands   atomic.Pointer[offsets.Claim] // claim while it is held, for watchClaims
	history  *history
	held     bool        // claim is ours, as far as we know
	wentBack bool        // the database knew less than claim says
	paused   atomic.Bool // by the source, because the queue is full
	pulse    pulse
	moved    bool // something was committed since the pause began to grow
}

func (e *engine) newWorker(partition int32) *worker {
	intake, stop := context.WithCancel(e.ctx)
	work, abort := context.WithCancel(context.WithoutCancel(e.ctx))
	w := &worker{
		e: e, partition: partition, queue: newQueue(e.cfg.Batch), pulse: newPulse(), stop: stop, abort: abort, done: make(chan struct{}), woken: make(chan struct{}, 1),
		log: e.cfg.Logger.With(slog.String("topic", e.cfg.Kafka.Topic), slog.Int("partition", int(partition))),
	}
	go func() {
		defer close(w.done)
		w.run(intake, work)
	}()
	return w
}

// errStopped ends a worker that was asked to stop.
var errStopped = errors.New("stopped")

// run is the life of the worker. intake ends with stop, work with abort.
func (w *worker) run(intake, work context.Context) {
	pause := w.e.cfg.Retry.newBackOff()
	pause.InitialInterval = fencedPause
	pause.Reset()
	for intake.Err() == nil {
		w.pulse.claiming()
		err := w.hold(intake, work)
		if w.moved {
			pause.Reset()
			w.moved = false
		}
		var halt *haltError
		switch {
		case errors.As(err, &halt):
			w.halt(work, halt)
			w.rest(intake)
			pause.Reset()
		case errors.As(err, new(*otherTopicError)):
			<-intake.Done() // the session ends
		case err != nil && intake.Err() == nil && !errors.Is(err, errStopped):
			w.e.source.shut(w)
			if err := sleep(intake, pause.NextBackOff()); err != nil {
				return
			}
		}
	}
}

// hold claims the partition and works under the claim until that ends.
func (w *worker) hold(intake, work context.Context) error {
	claim, err := w.e.claim(intake, w)
	if err != nil {
		return err
	}
	before := w.claim
	w.stand(claim)
	w.held = true
	w.tellWentBack(before)
	if w.history, err = w.e.recall(intake, w); err != nil {
		return err
	}
	call2(w.e.cfg.Hooks.Claimed, w.e.cfg.Kafka.Topic, claim)
	w.log.LogAttrs(work, slog.LevelDebug, "claimed", slog.Int64("epoch", claim.Epoch), slog.Int64("offset", claim.Next))
	from, err := w.e.inspect(intake, w, claim)
	if err != nil {
		return err
	}
	w.pulse.begin(claim.Next)
	w.e.source.seek(w, from)
	err = w.work(intake, work)
	if classify(err) == superseded {
		w.lose(work, err)
	}
	return err
}

// work commits batch after batch. The next batch is taken, decoded and keyed
// while one commits: by a goroutine that this function waits for, and that
// holds at most one batch.
func (w *worker) work(intake, work context.Context) error {
	ctx, cancel := context.WithCancel(intake)
	ready := make(chan *batch) // the sender holds the one that is ready
	var ended error            // why no batch follows; set before ready is closed
	go func() {
		defer close(ready)
		ended = w.prepare(ctx, ready)
	}()
	err := w.commit(intake, work, ready)
	cancel()
	for range ready { // waits for the goroutine
	}
	if err == nil {
		err = ended
	}
	if errors.Is(err, context.Canceled) {
		return errStopped
	}
	return err
}

// prepare makes batches until the queue ends or a message has a fault.
func (w *worker) prepare(ctx context.Context, ready chan<- *batch) error {
	for {
		chunks, err := w.queue.take(ctx)
		if err != nil {
			return err
		}
		w.pulse.take(chunks[len(chunks)-1].end)
		w.e.source.roomAgain(w)
		if err := w.decode(ctx, ready, chunks); err != nil {
			return err
		}
	}
}

// decode makes batches of chunks: one, or more where something that decoding
// needs is unavailable for a while.
func (w *worker) decode(ctx context.Context, ready chan<- *batch, chunks []chunk) error {
	pause := w.e.cfg.Retry.newBackOff()
	for len(chunks) > 0 {
		b, rest := newBatch(ctx, w.e.decoder, w.e.policy.OnError == HaltPartition, chunks)
		chunks = rest
		select {
		case ready <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
		if b.ends == nil {
			return nil
		}
		if !unavailable(b.ends) {
			<-ctx.Done() // nothing may be handled before the record at fault is
			return ctx.Err()
		}
		if err := w.e.pause(ctx, w.log, "decode", b.ends, pause.NextBackOff()); err != nil {
			return err
		}
	}
	return nil
}

// commit handles batches until there are no more or one cannot be passed.
func (w *worker) commit(intake, work context.Context, ready <-chan *batch) error {
	for b := range ready {
		if intake.Err() != nil {
			return errStopped
		}
		if err := w.handle(intake, work, b); err != nil {
			return err
		}
	}
	return nil
}

// handle commits one batch, and halts at the message that has a fault of its
// own.
func (w *worker) handle(intake, work context.Context, b *batch) error {
	if b.to.Next > w.claim.Next {
		if err := w.pass(intake, work, b); err != nil {
			return err
		}
	}
	if f, ok := errors.AsType[*schema.Fault](b.ends); ok {
		return &haltError{string(f.Reason), f}
	}
	return nil
}

// pass tries a batch until it is committed, or until it is known why it cannot
// be.
func (w *worker) pass(intake, work context.Context, b *batch) error {
	pause := w.e.cfg.Retry.newBackOff()
	var others patience
	for attempt := 1; ; attempt++ {
		next, err := w.e.transact(work, w.claim, b, w.history)
		if err == nil {
			w.stand(next)
			w.moved = true
			w.pulse.pass(next.Next)
			w.e.source.publish(w, next)
			return nil
		}
		var halt *haltError
		if errors.As(err, &halt) {
			return err
		}
		c := classify(err)
		if c == unknownCommit {
			var committed bool
			if committed, err = w.resolve(work, b, err); committed {
				return err
			}
			c = classify(err)
		}
		switch {
		case c == superseded:
			return err
		case c == ownFault:
			if f := w.e.early(b, faultsOf(err)); f != nil {
				if b, err = w.wait(intake, work, b, f, &others); err != nil {
					return err
				}
				continue
			}
			rest, final := w.withoutFault(b, err)
			if final != nil {
				return w.cutBefore(intake, work, b, final)
			}
			b = rest
			continue
		case c == systemic:
			return &haltError{CodeSystemic, err}
		case c == uncertain && attempt >= w.e.cfg.Retry.Attempts:
			return &haltError{CodeRetriesExhausted, fmt.Errorf("after %d attempts: %w", attempt, err)}
		}
		if err := w.e.pause(intake, w.log, "batch", err, pause.NextBackOff()); err != nil {
			return errStopped
		}
	}
}

// withoutFault says how to go on with a batch in which messages have a fault of
// their own: without them, where they are known; in isolation, where they are
// not, or where it may be another's doing. A fault at which the partition is to
// halt is returned instead.
func (w *worker) withoutFault(b *batch, err error) (*batch, *schema.Fault) {
	faults := faultsOf(err)
	if !b.isolate && (len(faults) == 0 || w.e.policy.OnError != HaltPartition && slices.ContainsFunc(faults, dependent)) {
		isolated := *b
		isolated.isolate, isolated.named = true, faults
		return &isolated, nil
	}
	if len(faults) == 0 {
		// COMMIT itself was refused, although each message had passed alone.
		var first *schema.Record
		if len(b.records) > 0 {
			first = b.records[0]
		}
		return nil, faultOf(err, first)
	}
	var keyReuse *haltAt
	if w.e.policy.OnError == HaltPartition || errors.As(err, &keyReuse) {
		return nil, faults[0]
	}
	return b.without(faults), nil
}

// cutBefore passes what stands before the message at fault, and halts there.
func (w *worker) cutBefore(intake, work context.Context, b *batch, f *schema.Fault) error {
	if n := b.place(f.Record); n >= 0 {
		head, _ := b.split(n)
		head.isolate = false
		if head.to.Next > w.claim.Next {
			if err := w.pass(intake, work, head); err != nil {
				return err
			}
		}
	}
	return &haltError{string(f.Reason), f}
}

// resolve finds out whether a COMMIT without an answer was done: it claims
// again, which waits for what the server may still be doing with it. It answers
// true when the batch is committed, and else the error to go on with.
func (w *worker) resolve(work context.Context, b *batch, cause error) (committed bool, err error) {
	next, err := w.e.reclaim(work, w.claim, w.log)
	if err != nil {
		return false, err
	}
	from := w.claim.Next
	w.stand(next)
	committed = next.Next == b.to.Next
	w.log.LogAttrs(work, slog.LevelWarn, "a COMMIT had no answer; claimed again to see what became of it",
		slog.Bool("committed", committed), slog.Int64("from", from), slog.Int64("to", b.to.Next), slog.Any("reason", cause))
	call2(w.e.cfg.Hooks.Resolved, BatchInfo{
		Topic: w.e.cfg.Kafka.Topic, Partition: w.partition, Epoch: next.Epoch, From: from, To: b.to.Next, Records: len(b.records),
	}, committed)
	switch {
	case committed:
		w.history.unknown.learn()
		w.pulse.pass(next.Next)
		w.e.source.publish(w, next)
		return true, nil
	case next.Next != from:
		return false, fmt.Errorf("%w: expected offset %d or %d, found %d", offsets.ErrFenced, from, b.to.Next, next.Next)
	}
	return false, errors.Unwrap(cause)
}

// sleep waits for the pause or the end of ctx, whichever comes first.
func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
