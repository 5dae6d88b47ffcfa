//go:build broker

package processor_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
)

// Proves that a group grows from one process to four and shrinks to two, and
// that its topic grows from 6 to 12 partitions, all under load, without loss or
// double: also of messages that the producer sends again to the partition that
// their number has led to since the topic grew (fault 32). It prints for how
// long a partition stood still at most.
func TestScaleOutAndIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	w.db.Exec(`alter table appended add column at timestamptz not null default clock_timestamp()`)
	members := []*processortest.Process{w.process(t)}
	s := streamTo(w, 6)
	w.ownedBy(members...)
	for len(members) < 4 {
		members = append(members, w.process(t))
		w.ownedBy(members...)
	}
	w.stoodStill("while 1 process became 4")
	w.AddPartitions(t, w.topic, 6)
	s.partitions.Store(12)
	w.waitFor(`select count(*) from consumer_offset where next_offset > 0 and partition >= 6`, "6")
	w.ownedBy(members...)

	const again = 600
	for p, records := range movedMessages(again) {
		w.produce(p, records...)
	}
	w.db.Exec(`insert into noted select max(seq) from appended`)
	for len(members) > 2 {
		terminated(t, members[0])
		members = members[1:]
		w.ownedBy(members...)
	}
	w.stoodStill("while 4 processes became 2")
	total := s.end()
	w.waitFor(`select sum(next_offset) from consumer_offset`, strconv.Itoa(total+again))
	w.noLag(12)
	for _, m := range members {
		terminated(t, m)
	}
	w.effects(total)
	w.exactly(total, again)
}

// movedMessages are messages that were sent to one of 6 partitions, by the one
// of 12 to which they would go now, which is another.
func movedMessages(count int) map[int32][]schema.Record {
	moved := map[int32][]schema.Record{}
	for n := 0; count > 0; n++ {
		if n%12 != n%6 {
			p := int32(n % 12)
			moved[p] = append(moved[p], processortest.Values(fmt.Sprint("m", n))...)
			count--
		}
	}
	return moved
}

// stoodStill prints the longest time without a commit of one partition since it
// was asked before.
func (w *world) stoodStill(when string) {
	w.tb.Helper()
	w.db.Exec(`create table if not exists noted as select 0::bigint as seq`)
	row := w.db.Rows(`select round(max(gap), 2), round(avg(gap) filter (where place = 1), 2) from (
		select p, gap, row_number() over (partition by p order by gap desc) as place from (
			select p, extract(epoch from at - lag(at) over (partition by p order by seq)) as gap
			from appended where seq > (select coalesce(max(seq), 0) from noted)) x where gap is not null) y`)[0]
	w.tb.Logf("%s: a partition stood still for %s s at most, for %s s on the average of their longest", when, row[0], row[1])
}
