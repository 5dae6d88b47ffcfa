package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// The lag ends at the last stable offset; a partition that the group has not
// begun lags by all that it holds; a halted one says why, and so does the total.
func TestStatus(t *testing.T) {
	s := status{Group: "g", Topic: "t"}
	s.fill(processor.Topic{Partitions: []processor.PartitionRange{
		{Partition: 0, Start: 5, Stable: 100, End: 120},
		{Partition: 1, Start: 5, Stable: 20, End: 20},
		{Partition: 2, Start: 0, Stable: 9, End: 9},
	}}, []offsets.Progress{
		{Partition: 0, Owner: "host/1", State: "open", Epoch: 3, First: 5, Next: 90, Records: 80, DuplicatesProducer: 4, DuplicatesRedelivery: 2, DeadLetters: 1},
		{Partition: 2, State: "halted", Reason: "decode", Epoch: 1, Next: 9, Records: 9},
	})
	var out bytes.Buffer
	if err := s.write(&out); err != nil {
		t.Fatal(err)
	}
	want := `group g, topic t
PARTITION  OWNER   EPOCH  NEXT  END  LAG  PROCESSED  DUPLICATES  BY PRODUCER  BY REDELIVERY  DEAD LETTERS  STATE
0          host/1  3      90    120  10   80         6           4            2              1             open
1          -       0      -     20   15   0          0           0            0              0             not begun
2          -       1      9     9    0    9          0           0            0              0             halted: decode
all                                  25   89         6           4            2              1             halted
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
