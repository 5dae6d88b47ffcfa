package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/offsets"
)

// lap is one run over records in a scratch, by the worker that a group would
// have: the same claim, the same transaction, the same way on after an error.
// The partitions are done one after the other, so that how batches are cut is
// all that two laps differ in.
type lap struct {
	p       *Processor // as it is configured for the lap
	scratch *scratch
	topic   Topic
	pool    *pgxpool.Pool
	ledger  *offsets.Ledger
	engine  *engine
	passed  func(records int) // told of each batch
}

// lapOptions say how a lap differs from the plain run of the pipeline.
type lapOptions struct {
	// group and handler are added to the names: under another group records are
	// read anew, under another handler all keys are new.
	group, handler string
	// batch is how many records one transaction has. Defaults to the pipeline's.
	batch int
	// cuts, if set, are made.
	cuts *cutter
	// log receives what the worker says. Defaults to nobody.
	log *slog.Logger
}

// openLap lets the pipeline look at the copies, as a start does.
func (v *verification) openLap(ctx context.Context, s *scratch, o lapOptions) (*lap, error) {
	p := v.p.forLap(s, o)
	l := &lap{p: p, scratch: s, topic: v.in.topic, passed: v.passed}
	var err error
	if l.pool, l.ledger, err = p.open(ctx); err != nil {
		return nil, fmt.Errorf("processor: verify: the pipeline does not start on copies of its tables: %w", err)
	}
	l.engine = p.assemble(ctx, l.pool, l.ledger, l.topic)
	l.engine.transactor.guard = onlyIn("verify", outsideRemedy, s.effects, s.ledger)
	return l, nil
}

func (l *lap) close() { l.pool.Close() }

// forLap returns the processor with the settings of a lap.
func (p *Processor) forLap(s *scratch, o lapOptions) *Processor {
	c := p.cfg
	c.Group += o.group
	c.Environment, c.Owner = "", "verify"
	c.Postgres = s.postgres(c.Postgres, o.cuts)
	c.Keys.Retain = 0
	c.Hooks = Hooks{}
	if o.cuts != nil {
		c.Hooks = o.cuts.hooks(c.Hooks)
	}
	fill(&o.batch, c.Batch.MaxRecords)
	c.Batch.MaxRecords = o.batch
	// What waits for others waits in vain, as they come one after the other. Which
	// share of a window fails depends on the batches, and is no effect.
	c.Policy.ConstraintWait, c.Policy.MaxDeadLetterRate = 0, 1
	c.Retry.Initial, c.Retry.Max = time.Millisecond, 4*time.Millisecond
	if c.Logger = o.log; o.log == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Processor{cfg: c, handler: p.handler + o.handler, decoder: p.decoder}
}

// run does the stretches, and answers with what passed.
func (l *lap) run(ctx context.Context, stretches []stretch) (account, error) {
	before, err := l.account(ctx)
	if err != nil {
		return account{}, err
	}
	begin := make([]offsets.Assigned, len(stretches))
	for i := range stretches {
		begin[i] = offsets.Assigned{Partition: stretches[i].partition, Start: stretches[i].from}
		l.engine.known[stretches[i].partition] = true
	}
	if _, err := l.ledger.Start(ctx, l.pool, l.topic.identity(), begin); err != nil {
		return account{}, err
	}
	for i := range stretches {
		if err := l.drive(ctx, &stretches[i]); err != nil {
			return account{}, err
		}
	}
	after, err := l.account(ctx)
	return after.since(before), err
}

// drive does one stretch as a worker that holds the partition, and claims again
// whenever a worker would.
func (l *lap) drive(ctx context.Context, s *stretch) error {
	w := &worker{e: l.engine, partition: s.partition, log: l.p.cfg.Logger}
	for {
		claim, err := l.engine.claim(ctx, w)
		if err != nil {
			return err
		}
		w.claim, w.held = claim, true
		if w.history, err = l.engine.recall(ctx, w); err != nil {
			return err
		}
		if err = l.work(ctx, w, s); err == nil || classify(err) != superseded {
			return l.explain(ctx, w, err)
		}
	}
}

// work commits batch after batch.
func (l *lap) work(ctx context.Context, w *worker, s *stretch) error {
	pause := l.p.cfg.Retry.newBackOff()
	for w.claim.Next < s.to {
		c := s.chunk(w.claim.Next, l.p.cfg.Batch.MaxRecords)
		b, _ := newBatch(ctx, l.p.decoder, l.p.cfg.Policy.OnError == HaltPartition, []chunk{c})
		if err := w.handle(ctx, ctx, b); err != nil {
			return err
		}
		l.passed(int(b.to.Records))
		if b.ends != nil {
			if err := l.engine.pause(ctx, w.log, "decode", b.ends, pause.NextBackOff()); err != nil {
				return err
			}
		}
	}
	return nil
}

// explain says what a halt means here.
func (l *lap) explain(ctx context.Context, w *worker, err error) error {
	var halt *haltError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &halt) && halt.code == codeOutside:
		return halt.err
	case errors.As(err, &halt):
		return fmt.Errorf("processor: verify: %w at %s/%d, before offset %d, so that nothing can be said of what comes after: "+
			"have the range end before it (--to), or set it aside (on_error: dead_letter): %w", ErrHalted, l.topic.Name, w.partition, w.claim.Next, err)
	}
	return err
}

// rewind sets the positions back to the beginning of the stretches.
func (l *lap) rewind(ctx context.Context, stretches []stretch) error {
	changes := make([]offsets.Change, len(stretches))
	for i := range stretches {
		changes[i] = offsets.Change{Partition: stretches[i].partition, Action: offsets.Rewind, To: stretches[i].from}
	}
	_, err := l.ledger.Apply(ctx, l.pool, changes, offsets.Note{By: "verify", Reason: "the same positions again"}, 0)
	return err
}

// account is what has passed.
type account struct{ records, applied, duplicates, deadLetters int64 }

func (a account) since(b account) account {
	return account{a.records - b.records, a.applied - b.applied, a.duplicates - b.duplicates, a.deadLetters - b.deadLetters}
}

// account reads it from the ledger, which has counted in the transactions.
func (l *lap) account(ctx context.Context) (account, error) {
	progress, err := l.ledger.Progress(ctx, l.pool)
	var a account
	for i := range progress {
		p := &progress[i]
		a.records += p.Records
		a.applied += p.Applied()
		a.duplicates += p.DuplicatesProducer + p.DuplicatesRedelivery
		a.deadLetters += p.DeadLetters
	}
	return a, err
}
