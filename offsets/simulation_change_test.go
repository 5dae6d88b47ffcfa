package offsets_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncestream/oncestream/offsets"
)

// change is what a person does to a partition, sensible or not, while workers hold
// claims on it.
func (s *simulation) change(ctx context.Context, w *simWorker, p int32) error {
	c := offsets.Change{Partition: p}
	switch s.choose("action", 3) {
	case 0:
		c.Action, c.To = offsets.Rewind, max(0, s.highest[p]-int64(s.choose("back", 8)))
	case 1:
		c.Action, c.To = offsets.Skip, min(simRecords, s.highest[p]+int64(s.choose("forward", 5)))
	default:
		c.Action, c.To, c.Identity = offsets.Adopt, s.highest[p], identity(s.topics[p])
		if s.choose("elsewhere", 2) == 0 {
			c.To = int64(s.choose("offset", simRecords))
		}
	}
	return s.apply(ctx, w, c)
}

func (s *simulation) apply(ctx context.Context, w *simWorker, c offsets.Change) error {
	p := c.Partition
	if s.busy(p) {
		return nil
	}
	done, err := s.ledger.Apply(ctx, w.conn, []offsets.Change{c}, offsets.Note{By: "rapid", Reason: "a test"}, 0)
	s.note("%s %d to %d: %+v %v", c.Action, p, c.To, done, err)
	refused, isRefused := errors.AsType[*offsets.RefusedChange](err)
	switch {
	case isRefused && refused.Change == c:
		s.seen[string(c.Action)+" refused"] = true
	case err != nil || len(done) != 1:
		return violation{fmt.Sprintf("%s: %v %v", c.Action, done, err)}
	default:
		s.seen[string(c.Action)] = true
		s.highest[p] = c.To
	}
	return s.oracle.changed(c, s.topics[p], done)
}

// changed foretells whether a change is refused, and what it leaves behind.
func (o *oracle) changed(c offsets.Change, topic byte, got []offsets.Planned) error {
	if o == nil {
		return nil
	}
	row, known := o.now.rows[c.Partition]
	sensible := map[offsets.Action]bool{
		offsets.Rewind: c.To < row.next, offsets.Skip: c.To > row.next, offsets.Adopt: row.topic != topic,
	}
	if known && sensible[c.Action] != (len(got) == 1) || !known && len(got) != 0 {
		return violation{fmt.Sprintf("%s %d to %d of %+v: it was done: %t", c.Action, c.Partition, c.To, row, len(got) == 1)}
	}
	if len(got) == 0 {
		return nil
	}
	want := offsets.Planned{
		Change: c, Stored: identity(row.topic), First: row.first, Next: row.next, Epoch: row.epoch + 1,
		Owner: got[0].Owner, State: "open", Floor: -1,
	}
	switch c.Action {
	case offsets.Rewind:
		want.Again = row.next - c.To
		row.rewound += row.next - max(c.To, row.first)
		row.first = min(row.first, c.To)
	case offsets.Skip:
		want.LeftOut = c.To - row.next
		row.skipped += c.To - row.next
	case offsets.Adopt:
		row.rewound += row.next - row.first
		row.first, row.topic = c.To, topic
	}
	row.next, row.epoch = c.To, row.epoch+1
	o.now.rows[c.Partition] = row
	return differs("change", got[0], want)
}
