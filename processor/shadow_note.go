package processor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
)

// note writes down what the live ledger knows of why its tables may differ.
func (s *shadow) note(ctx context.Context, tx pgx.Tx, progress []offsets.Progress) error {
	var before, rewound int64
	for i := range progress {
		p := &progress[i]
		if n := s.span(p.Partition); n >= 0 {
			before += s.report.Partitions[n].From - p.First
			rewound += max(0, s.report.Partitions[n].To-p.Next)
		}
	}
	say := func(n int64, format string) {
		if n > 0 {
			s.report.Notes = append(s.report.Notes, fmt.Sprintf(format, n))
		}
	}
	say(before, "%d offsets that the group has read come before the range: rows of their records are extra")
	say(s.report.Skipped, "%d records were skipped by a person, and are not rebuilt")
	say(rewound, "%d offsets were set back by a person while this ran: what was read of them is not in the ledger any more")
	if s.report.Compacted {
		s.report.Notes = append(s.report.Notes, compactedNote)
	}
	again, err := s.ledger.CountDeadLetters(ctx, tx, offsets.DeadLetterFilter{States: []string{offsets.StateReplayed}}, offsets.GroupByReason)
	var replayed int64
	for _, c := range again {
		replayed += c.Count
	}
	say(replayed, "%d dead letters were replayed since: their rows are extra, unless their cause has gone")
	return err
}

// compactedNote says why nothing is to be expected of a compacted topic.
const compactedNote = "the topic is compacted (cleanup.policy), and so no history: of each record key only the last record is sure to be kept, " +
	"so that effects of others cannot be rebuilt, and differences are to be expected"
