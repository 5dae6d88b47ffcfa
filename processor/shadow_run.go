package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// forShadow returns the processor with the settings of the shadow. All that the
// pipeline finds by a bare name it finds in the shadow's schema first. A crash of
// the server ends the shadow replay, so no COMMIT waits for the disk.
//
// What the live partition has passed is passed: where it would halt now, a person
// has decided to go on then, or the reason has gone.
func (s *shadow) forShadow() *Processor {
	c := s.p.cfg
	path := []string{pgx.Identifier{s.opts.Schema}.Sanitize()}
	for _, live := range s.copied.SearchPath {
		path = append(path, pgx.Identifier{live}.Sanitize())
	}
	c.Environment, c.Owner, c.Hooks, c.Keys.Retain = "", "shadow", Hooks{}, 0
	c.Postgres.Schema, c.Postgres.Concurrency = s.opts.Schema+ledgerSuffix, 1
	c.Postgres = c.Postgres.withSettings(map[string]string{
		"search_path": strings.Join(path, ", "), "synchronous_commit": "off", "application_name": "oncestream shadow",
	})
	// Nobody else changes the shadow, so that waiting for others is in vain.
	c.Policy.ConstraintWait, c.Policy.MaxDeadLetterRate, c.Policy.RecordDuplicates = 0, 1, false
	for _, action := range []*Action{&c.Policy.OnError, &c.Policy.OnKeyReuse} {
		if *action == HaltPartition {
			*action = DeadLetter
		}
	}
	return &Processor{cfg: c, handler: s.p.handler, decoder: s.p.decoder}
}

// begin lets the pipeline look at the copies, as a start does.
func (s *shadow) begin(ctx context.Context) error {
	s.at = s.forShadow()
	pool, ledger, err := s.at.open(ctx)
	if err != nil {
		return fmt.Errorf("processor: shadow: the pipeline does not start on copies of its tables: %w", err)
	}
	s.pool = pool
	s.engine = s.at.assemble(ctx, pool, ledger, s.topic)
	s.engine.guard = onlyIn("shadow", outsideRemedy, s.opts.Schema, s.opts.Schema+ledgerSuffix)
	return nil
}

// replay reads spans and handles what it reads.
func (s *shadow) replay(ctx context.Context, spans []RangeReport) error {
	source, err := openRange(ctx, s.p.cfg.Kafka, spans)
	if err != nil {
		return err
	}
	defer source.close()
	s.topic, s.engine.identity = source.topic, source.topic.identity()
	if s.skipped, err = s.ledger.LeftOut(ctx, s.conn); err != nil {
		return err
	}
	for _, span := range spans {
		if err := s.serve(ctx, span); err != nil {
			return err
		}
	}
	for !source.done() {
		partition, chunks, err := source.next(ctx)
		if err != nil {
			return err
		}
		for _, c := range chunks {
			c.end = min(c.end, source.spans[partition].to)
			if err := s.pass(ctx, s.workers[partition], c); err != nil {
				return err
			}
		}
		s.progress(spans)
	}
	return nil
}

// progress tells how much of the spans has been handled.
func (s *shadow) progress(spans []RangeReport) {
	if s.bounds.Progress == nil {
		return
	}
	var done, total int64
	for _, span := range spans {
		done += max(0, s.workers[span.Partition].claim.Next-span.From)
		total += span.To - span.From
	}
	s.bounds.Progress(done, total)
}

// serve claims a partition of the shadow's ledger, which then begins where the
// span does, unless it is served already.
func (s *shadow) serve(ctx context.Context, span RangeReport) error {
	i := s.span(span.Partition)
	if s.workers[span.Partition] != nil {
		s.report.Partitions[i].To = span.To
		return nil
	}
	claims, _, err := s.engine.ledger.Claim(ctx, s.pool, s.at.cfg.Owner, s.topic.identity(), []offsets.Assigned{{Partition: span.Partition, Start: span.From}})
	if err != nil {
		return err
	}
	w := &worker{e: s.engine, partition: span.Partition, log: s.at.cfg.Logger.With(slog.Int("partition", int(span.Partition))), pulse: newPulse(), held: true}
	w.stand(claims[0])
	if w.history, err = s.engine.recall(ctx, w); err != nil {
		return err
	}
	s.workers[span.Partition] = w
	s.report.Partitions = append(s.report.Partitions, span)
	return nil
}

// span is which of the report's partitions it is, or -1.
func (s *shadow) span(partition int32) int {
	for i := range s.report.Partitions {
		if s.report.Partitions[i].Partition == partition {
			return i
		}
	}
	return -1
}

// pass handles the records of a chunk, as many at once as a batch may have.
func (s *shadow) pass(ctx context.Context, w *worker, c chunk) error {
	pause := s.at.cfg.Retry.newBackOff()
	for rest := s.cut(s.withoutSkipped(c)); len(rest) > 0; {
		b, left := newBatch(ctx, s.at.decoder, false, rest[:1])
		rest = append(left, rest[1:]...)
		if err := w.handle(ctx, ctx, b); err != nil {
			return s.explain(ctx, w, err)
		}
		if b.ends != nil { // something that decoding needs is unavailable
			if err := s.engine.pause(ctx, w.log, "decode", b.ends, pause.NextBackOff()); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutSkipped leaves out what a person has left out of the live tables.
func (s *shadow) withoutSkipped(c chunk) chunk {
	all := len(c.records)
	c.records = slices.DeleteFunc(c.records, func(r schema.Record) bool {
		return slices.ContainsFunc(s.skipped, func(span offsets.Span) bool { return span.Holds(r.Partition, r.Offset) })
	})
	s.report.Skipped += int64(all - len(c.records))
	return c
}

// cut makes pieces of a chunk that are no larger than a batch.
func (s *shadow) cut(c chunk) []chunk {
	var pieces []chunk
	for n := s.at.cfg.Batch.MaxRecords; len(c.records) > n; c.records = c.records[n:] {
		piece := c
		piece.records, piece.end = c.records[:n], c.records[n].Offset
		pieces = append(pieces, piece)
	}
	return append(pieces, c)
}

// explain says what an error means that would halt a live partition.
func (s *shadow) explain(ctx context.Context, w *worker, err error) error {
	var halt *haltError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &halt) && halt.code == codeOutside:
		return halt.err
	}
	return fmt.Errorf("processor: shadow: %s/%d@%d: %w", s.topic.Name, w.partition, w.claim.Next, err)
}

// account reads what has passed from the shadow's ledger, which has counted in
// the transactions.
func (s *shadow) account(ctx context.Context) error {
	progress, err := s.engine.ledger.Progress(ctx, s.pool)
	r := &s.report
	r.Records, r.Effects, r.Duplicates, r.DeadLetters = 0, 0, 0, 0
	for i := range progress {
		p := &progress[i]
		r.Records += p.Records
		r.Effects += p.Applied()
		r.Duplicates += p.DuplicatesProducer + p.DuplicatesRedelivery
		r.DeadLetters += p.DeadLetters
		if n := s.span(p.Partition); n >= 0 {
			r.Partitions[n].Records, r.Partitions[n].Fresh = p.Records, p.Applied()
		}
	}
	if err != nil || r.DeadLetters == 0 {
		return err
	}
	r.Reasons, err = s.engine.ledger.CountDeadLetters(ctx, s.pool, offsets.DeadLetterFilter{}, offsets.GroupByReason)
	return err
}
