package offsets

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Span is the offsets [From, To) of a partition.
type Span struct {
	Partition int32
	From, To  int64
}

// Holds reports whether the offset of the partition is among them.
func (s Span) Holds(partition int32, offset int64) bool {
	return s.Partition == partition && s.From <= offset && offset < s.To
}

const sqlMoves = `
select partition, action, old_offset, new_offset
from $offset_change
where consumer_group = $1 and topic = $2
order by id`

// LeftOut returns the offsets before the stored positions that were never handled
// because a person has skipped them, by partition and offset. A rewind to before
// them has them read after all; an adopt leaves them behind with their topic.
func (l *Ledger) LeftOut(ctx context.Context, db DB) ([]Span, error) {
	operation := "read what was left out of " + l.topic
	rows, err := db.Query(ctx, l.sql.moves, l.group, l.topic)
	if err != nil {
		return nil, wrap(operation, err)
	}
	var left []Span
	var action Action
	var move Span
	_, err = pgx.ForEachRow(rows, []any{&move.Partition, &action, &move.From, &move.To}, func() error {
		switch action {
		case Skip:
			left = append(left, move)
		case Rewind:
			left = before(left, move.Partition, move.To)
		case Adopt:
			left = before(left, move.Partition, 0)
		}
		return nil
	})
	slices.SortFunc(left, func(a, b Span) int {
		if a.Partition != b.Partition {
			return int(a.Partition - b.Partition)
		}
		return int(a.From - b.From)
	})
	return left, wrap(operation, err)
}

// before cuts the spans of a partition at an offset.
func before(spans []Span, partition int32, offset int64) []Span {
	for i := range spans {
		if spans[i].Partition == partition {
			spans[i].To = min(spans[i].To, offset)
		}
	}
	return slices.DeleteFunc(spans, func(s Span) bool { return s.From >= s.To })
}
