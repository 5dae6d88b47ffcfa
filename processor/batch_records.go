package processor

import (
	"context"
	"errors"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// batch is what one transaction handles: records of one partition in the order
// of their offsets, and the position behind them. A batch may hold no record
// and still move the position, over gaps and transaction markers.
type batch struct {
	// records, entries and places describe the messages: places says where each
	// stands in messages.
	records  []*schema.Record
	entries  []offsets.Entry
	places   []int
	messages messages
	// dead are the records that are set aside, in the order of their offsets.
	dead []*schema.Fault
	to   offsets.Position
	// isolate says that one of the messages was refused by the database, which
	// does not say which one, or not whether by its own fault.
	isolate bool
	// named are the messages that were blamed before isolation, although another
	// may be the cause.
	named []*schema.Fault
	// refused says that messages at fault were named before: where there are
	// more, isolation finds them all and does not need a try for each.
	refused bool
	// waited says that what a unique or a foreign key refuses is final; see
	// patience.
	waited bool
	// ends is why the batch ends before the chunks that it was made of: a fault
	// at which the partition halts, or something that is unavailable.
	ends error
}

// newBatch decodes chunks into a batch. A record at fault is set aside, or ends
// the batch if the partition is to halt at it. The rest is what was not decoded.
func newBatch(ctx context.Context, d decoder, halt bool, chunks []chunk) (b *batch, rest []chunk) {
	b = &batch{}
	for i := range chunks {
		for j := range chunks[i].records {
			r := &chunks[i].records[j]
			if b.ends = b.take(ctx, d, halt, r); b.ends != nil {
				b.endBefore(r)
				return b, chunks[i].behind(j, chunks[i+1:])
			}
		}
		b.to = offsets.Position{Next: chunks[i].end, LeaderEpoch: chunks[i].leaderEpoch}
	}
	b.count()
	return b, nil
}

// behind returns the records of c from place j on, and the chunks that follow.
func (c chunk) behind(j int, following []chunk) []chunk {
	c.records = c.records[j:]
	return append([]chunk{c}, following...)
}

// take decodes one record. The error ends the batch.
func (b *batch) take(ctx context.Context, d decoder, halt bool, r *schema.Record) error {
	err := d.decode(ctx, b, r)
	if f, ok := errors.AsType[*schema.Fault](err); ok && !halt {
		b.dead = append(b.dead, f)
		return nil
	}
	return err
}

func (b *batch) add(r *schema.Record, place int, e offsets.Entry) {
	b.records, b.places, b.entries = append(b.records, r), append(b.places, place), append(b.entries, e)
}

// endBefore sets the position to a record that is not passed.
func (b *batch) endBefore(r *schema.Record) {
	b.to = offsets.Position{Next: r.Offset, LeaderEpoch: -1}
	b.count()
}

// count completes the position by what the records say.
func (b *batch) count() {
	b.to.Records = int64(len(b.records) + len(b.dead))
	last := b.last()
	if last == nil {
		return
	}
	b.to.Time = last.Time
	if b.to.LeaderEpoch < 0 {
		b.to.LeaderEpoch = last.LeaderEpoch
	}
}

// last is the record with the highest offset.
func (b *batch) last() *schema.Record {
	var last *schema.Record
	if n := len(b.records); n > 0 {
		last = b.records[n-1]
	}
	if n := len(b.dead); n > 0 && (last == nil || b.dead[n-1].Record.Offset > last.Offset) {
		last = b.dead[n-1].Record
	}
	return last
}

// split cuts the batch in two before its message n.
func (b *batch) split(n int) (head, tail *batch) {
	h, t := *b, *b
	cut := b.records[n]
	h.records, h.entries, h.places = b.records[:n], b.entries[:n], b.places[:n]
	t.records, t.entries, t.places = b.records[n:], b.entries[n:], b.places[n:]
	d := 0
	for d < len(b.dead) && b.dead[d].Record.Offset < cut.Offset {
		d++
	}
	h.dead, t.dead = b.dead[:d:d], b.dead[d:]
	h.ends = nil
	h.endBefore(cut)
	t.count()
	return &h, &t
}

// place returns which message the record is, or -1.
func (b *batch) place(r *schema.Record) int {
	for i := range b.records {
		if b.records[i] == r {
			return i
		}
	}
	return -1
}

// without returns the batch with the faults' messages set aside.
func (b *batch) without(faults []*schema.Fault) *batch {
	at := make(map[*schema.Record]bool, len(faults))
	for _, f := range faults {
		at[f.Record] = true
	}
	rest := *b
	rest.records, rest.entries, rest.places = nil, nil, nil
	for i, r := range b.records {
		if !at[r] {
			rest.add(r, b.places[i], b.entries[i])
		}
	}
	rest.dead = mergeDead(b.dead, faults)
	rest.refused = true
	return &rest
}
