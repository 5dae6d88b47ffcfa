package processor

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/schema"
)

// Proves which offsets are verified: the last ones of the topic, of which a short
// partition leaves its share to the others, unless the range says otherwise.
func TestVerifyRangeLatest(t *testing.T) {
	topic := Topic{Name: "t", Partitions: []PartitionRange{
		{Partition: 0, Start: 100, Stable: 1000, End: 1005},
		{Partition: 1, Start: 0, Stable: 10, End: 10},
		{Partition: 2, Start: 7, Stable: 7, End: 7},
	}}
	for _, c := range []struct {
		r           Range
		records     int64
		uncommitted bool
		want        string
	}{
		{Range{}, 10_000, false, "0[100,1000) 1[0,10)"},
		{Range{}, 10_000, true, "0[100,1005) 1[0,10)"},
		{Range{}, 90, false, "0[920,1000) 1[0,10)"},
		{Range{}, 6, false, "0[997,1000) 1[7,10)"},
		{Range{From: map[int32]int64{0: 500}}, 6, false, "0[500,1000) 1[7,10)"},
		{Range{To: map[int32]int64{0: 300, 1: 0}}, 50, false, "0[250,300)"},
		{Range{From: map[int32]int64{1: 3}, To: map[int32]int64{0: 0, 1: 5}}, 50, false, "1[3,5)"},
	} {
		spans, err := c.r.latest(topic, c.records, c.uncommitted)
		var got []string
		for _, s := range spans {
			got = append(got, fmt.Sprintf("%d[%d,%d)", s.Partition, s.From, s.To))
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%+v, %d records: %v, %v, want %s", c.r, c.records, got, err, c.want)
		}
	}
	_, err := (Range{To: map[int32]int64{3: 1}}).latest(topic, 1, false)
	if err == nil || !strings.Contains(err.Error(), "t/3: the topic has 3 partitions") {
		t.Errorf("got %v", err)
	}
}

// Proves that another order keeps the records of one record key in theirs, the
// offsets where they were, and every record; and that a seed decides it.
func TestVerifyShuffled(t *testing.T) {
	s := stretch{from: 0, to: 400}
	for i := range 100 {
		r := schema.Record{Offset: int64(4 * i), Value: fmt.Append(nil, i)}
		if i%3 > 0 {
			r.Key = fmt.Append(nil, i%7)
		}
		s.records = append(s.records, r)
	}
	mixed := s.shuffled(rand.New(rand.NewPCG(1, 0)))
	last, seen, moved := map[string]int{}, map[string]bool{}, 0
	for i, r := range mixed.records {
		var n int
		_, err := fmt.Sscan(string(r.Value), &n)
		if err != nil || r.Offset != int64(4*i) || string(s.records[n].Key) != string(r.Key) {
			t.Fatalf("record %d is %+v, %v", i, r, err)
		}
		if before, ok := last[string(r.Key)]; ok && r.Key != nil && n < before {
			t.Errorf("key %s: %d comes behind %d", r.Key, n, before)
		}
		last[string(r.Key)], seen[string(r.Value)] = n, true
		if n != i {
			moved++
		}
	}
	if len(seen) != 100 || moved < 50 {
		t.Errorf("%d of 100 records, %d of them moved", len(seen), moved)
	}
	again := s.shuffled(rand.New(rand.NewPCG(1, 0)))
	for i := range again.records {
		if string(again.records[i].Value) != string(mixed.records[i].Value) {
			t.Fatal("the same seed gives another order")
		}
	}
}

// Proves that a batch has the records that are asked for, in the range without a
// gap, and that its position passes the gaps of the log.
func TestVerifyChunk(t *testing.T) {
	s := stretch{partition: 1, from: 10, to: 30}
	for _, offset := range []int64{12, 13, 20} {
		s.records = append(s.records, schema.Record{Partition: 1, Offset: offset})
	}
	for _, c := range []struct {
		next int64
		n    int
		want string
	}{{10, 1, "1 to 13"}, {13, 1, "1 to 14"}, {14, 1, "1 to 30"}, {10, 2, "2 to 14"}, {10, 9, "3 to 30"}, {21, 9, "0 to 30"}} {
		got := s.chunk(c.next, c.n)
		if text := fmt.Sprintf("%d to %d", len(got.records), got.end); text != c.want {
			t.Errorf("%d records from %d: %s, want %s", c.n, c.next, text, c.want)
		}
	}
	later := s.later()
	if later.from != 30 || later.to != 50 || later.records[2].Offset != 40 || s.records[2].Offset != 20 {
		t.Errorf("later is %+v", later)
	}
}
