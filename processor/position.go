package processor

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/oncestream/oncestream/offsets"
)

// logBounds is what a partition's log holds.
type logBounds struct {
	start, end int64
	// epochEnd is where the records of the claim's leader epoch end, -1 where
	// the broker does not know, or was not asked.
	epochEnd int64
}

// judge says whether the log still holds what comes next, and still is the log
// that was read up to there; it is nil where all is well. The epoch goes first
// of what lies at the end: a log that was cut and has grown again beyond our
// offset is found by it alone (KIP-320).
func (b logBounds) judge(c offsets.Claim) *haltError {
	switch {
	case c.Next < b.start:
		return doubtful(CodeRetentionPassed, c.Next, b.start,
			"the stored offset %d lies before the log, which begins at %d: lost [%d, %d), removed before it was read",
			c.Next, b.start, c.Next, b.start)
	case b.epochEnd >= b.start && b.epochEnd < c.Next:
		return doubtful(CodeLogTruncated, b.epochEnd, c.Next,
			"the log was cut below what was handled: the record before the stored offset %d is of leader epoch %d, which ends at %d now: [%d, %d) was handled and is in the log no more, other records may have those offsets",
			c.Next, c.LeaderEpoch, b.epochEnd, b.epochEnd, c.Next)
	case c.Next > b.end:
		return doubtful(CodeBeyondEnd, b.end, c.Next,
			"the stored offset %d lies beyond the end of the log at %d: it was cut, or restored from a copy; [%d, %d) was handled and is in the log no more",
			c.Next, b.end, b.end, c.Next)
	}
	return nil
}

func doubtful(code string, from, to int64, format string, args ...any) *haltError {
	return &haltError{code, &doubtfulError{from, to, fmt.Sprintf(format, args...)}}
}

// epochKnown reports whether the broker can tell if the log was cut below the
// claim.
func (b logBounds) epochKnown() bool { return b.epochEnd >= b.start }

// inspect compares the claim with the log before anything is fetched, however
// long the broker takes to answer. The answer is the claim to fetch with: without
// its leader epoch where the broker does not know that, since kgo would take this
// for a truncation of the whole log.
//
// A first look may be shared with other partitions and be older than the claim:
// then a predecessor may have read beyond its end. So only a second look, which
// is not, halts.
func (e *engine) inspect(intake context.Context, w *worker, c offsets.Claim) (offsets.Claim, error) {
	err := e.persist(intake, w.log, "inspect the log", w.partition, func(ctx context.Context) error {
		b, err := e.source.bounds(ctx, c, true)
		if err == nil && b.judge(c) != nil {
			b, err = e.source.bounds(ctx, c, false)
		}
		if err != nil {
			return err
		}
		if halt := b.judge(c); halt != nil {
			return e.confirm(ctx, halt)
		}
		if !b.epochKnown() {
			c.LeaderEpoch = -1
		}
		return nil
	})
	return c, err
}

// doubtError ends the work under a claim because the broker has answered what
// may mean that the log is not what it was. The next claim looks at the log.
type doubtError struct{ err error }

func (d *doubtError) Error() string { return "the log must be looked at: " + d.err.Error() }
func (d *doubtError) Unwrap() error { return d.err }

// doubt has the worker of a partition look at its log again.
func (s *groupSource) doubt(partition int32, err error) {
	if w := s.e.worker(partition); w != nil {
		w.log.LogAttrs(s.e.ctx, slog.LevelWarn, "looking at the log again before anything more is read of it", slog.Any("reason", err))
		w.queue.fail(&doubtError{err})
	}
}
