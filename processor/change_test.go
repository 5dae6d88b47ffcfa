package processor_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor/processortest"
)

// unexpectedEffects are the offsets whose number of effects is not what the
// changes by a person leave: one where a worker has passed the offset, however
// often; none where it was left out. What was passed is the way from where a
// change has led to where the next one was made.
const unexpectedEffects = `
with stop as (
  select partition, id, old_offset as came_to, new_offset as goes_to from offset_change
  union all
  select partition, null, next_offset, null from consumer_offset
), way as (
  select partition, coalesce(lag(goes_to) over w, 0) as from_offset, came_to as to_offset
  from stop window w as (partition by partition order by id nulls last)
), passed as (
  select distinct partition as p, o from way, generate_series(from_offset, to_offset - 1) as o
), effect as (
  select p, o, count(*) as times from appended group by p, o
)
select p || '/' || o || ' has ' || coalesce(times, 0) || ' effects' from passed full join effect using (p, o)
where passed is null or times is distinct from 1`

// changed is a world in which a person moves positions while a processor runs.
type changed struct {
	*world
	ledger *offsets.Ledger
	random *rand.Rand
	done   map[offsets.Action]int
}

// move tries a change that may come too late, which is refused.
func (c *changed) move() {
	c.tb.Helper()
	progress, err := c.ledger.Progress(c.tb.Context(), c.db.Pool)
	must(c.tb, err)
	for _, p := range progress {
		change := offsets.Change{Partition: p.Partition, Action: offsets.Rewind, To: max(0, p.Next-1-c.random.Int64N(200))}
		if c.random.IntN(2) == 0 {
			change.Action, change.To = offsets.Skip, min(p.Next+10, c.EndOffset(c.tb, c.topic, p.Partition))
		}
		_, err := c.ledger.Apply(c.tb.Context(), c.db.Pool, []offsets.Change{change}, offsets.Note{By: "ada", Reason: "a test"}, patience)
		if _, refused := errors.AsType[*offsets.RefusedChange](err); refused {
			continue
		}
		must(c.tb, err)
		c.done[change.Action]++
	}
}

// atEnd waits until every partition has been read to its end.
func (c *changed) atEnd(each string) {
	c.tb.Helper()
	c.waitFor(`select string_agg(next_offset::text, ' ' order by partition) from consumer_offset`, each)
}

// A person rewinds and skips while the processor is under load: the workers are
// fenced, follow, and reach the end; every record that was passed has one effect,
// what was left out has none, the account adds up, and each change is written
// down in an epoch of its own.
func TestChangesUnderLoad(t *testing.T) {
	w := newWorld(t, 2)
	cfg := w.config()
	cfg.Batch.MaxRecords = 40
	w.produce(0, numbered("p0-", 1)...)
	w.produce(1, numbered("p1-", 1)...)
	seed := rand.Uint64()
	c := &changed{
		world: w, random: rand.New(rand.NewPCG(seed, 0)), done: map[offsets.Action]int{},
		ledger: offsets.New(offsets.Options{Schema: w.db.Schema, Group: w.group, Topic: w.topic}),
	}
	t.Logf("seed %d", seed)
	r := start(t, newProcessor(t, cfg, texts(appendSink{})))
	c.atEnd("1 1")
	records := [2][]string{values("p0-", 3000)[1:], values("p1-", 3000)[1:]}
	for len(records[0]) > 0 {
		for p := range records {
			n := min(100, len(records[p]))
			w.produce(int32(p), processortest.Values(records[p][:n]...)...)
			records[p] = records[p][n:]
		}
		c.move()
	}
	c.atEnd("3000 3000")
	r.finish()
	for _, row := range w.db.Rows(unexpectedEffects) {
		t.Error(row[0])
	}
	for _, row := range w.db.Rows(`select partition, next_offset - first_offset + rewound - records - skipped, rewound > 0, skipped > 0 from consumer_offset`) {
		if row[1] != "0" || row[2] != "t" || row[3] != "t" {
			t.Errorf("the account of partition %s: off by %s, rewound %s, skipped %s", row[0], row[1], row[2], row[3])
		}
	}
	c.writtenDown()
	t.Logf("%v changes, %s", c.done, w.account())
}

// writtenDown checks the rows that the changes have left.
func (c *changed) writtenDown() {
	c.tb.Helper()
	all, err := c.ledger.Changes(c.tb.Context(), c.db.Pool, 1000)
	must(c.tb, err)
	written, epochs := map[offsets.Action]int{}, map[int32]int64{}
	for _, change := range all { // the newest first
		written[change.Action]++
		if later, ok := epochs[change.Partition]; ok && change.Epoch >= later || change.By != "ada" || change.Reason != "a test" {
			c.tb.Errorf("written down: %+v, before epoch %d", change, later)
		}
		epochs[change.Partition] = change.Epoch
	}
	if !maps.Equal(written, c.done) || min(written[offsets.Rewind], written[offsets.Skip]) == 0 {
		c.tb.Errorf("%v changes were made, %v are written down", c.done, written)
	}
}

func values(prefix string, n int) []string {
	all := make([]string, n)
	for i, r := range numbered(prefix, n) {
		all[i] = string(r.Value)
	}
	return all
}
