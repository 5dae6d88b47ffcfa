package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// The lag ends at the last stable offset and begins where the log does; a
// partition that the group has not begun lags by all that it holds; a halted one
// says why, with the command for this file, and so does the total; the dead
// letters are those that are open; drift has a sign, and what holds back the
// vacuum is named.
func TestStatus(t *testing.T) {
	s := status{Group: "g", Topic: "t"}
	s.fill(processor.Topic{Partitions: []processor.PartitionRange{
		{Partition: 0, Start: 5, Stable: 100, End: 120},
		{Partition: 1, Start: 5, Stable: 20, End: 20},
		{Partition: 2, Start: 0, Stable: 9, End: 9},
		{Partition: 3, Start: 500, Stable: 500, End: 500},
	}}, []offsets.Progress{
		{
			Partition: 0, Owner: "host/1", State: "open", Epoch: 3, First: 5, Next: 90, Records: 80,
			DuplicatesProducer: 4, DuplicatesRedelivery: 2, DeadLetters: 3, OpenDeadLetters: 1,
		},
		{Partition: 2, State: "halted", Reason: "decode: bad; to resolve it: oncestream offsets skip FILE --partition 2", Epoch: 1, Next: 9, Records: 9},
		{Partition: 3, Owner: "host/1", State: "open", Epoch: 1, Next: 100, Records: 100},
	})
	s.compare(map[int32]int64{0: 85, 1: 7, 3: 130})
	for i, f := range []processor.Forecast{
		{Outlook: processor.OutlookDue, Remaining: 26*time.Hour + time.Minute}, {}, {Outlook: processor.OutlookNone}, {Outlook: processor.OutlookLost, Lost: 400},
	} {
		if f.Outlook != "" {
			s.Partitions[i].predicted(f)
		}
	}
	old := offsets.Transaction{Kind: "session", PID: 7, User: "ann", Application: "psql", State: "idle in transaction", Age: 10*time.Minute + time.Millisecond, DeadRows: 44}
	s.Oldest = describe(old, 10*time.Minute)
	if young := describe(old, 11*time.Minute); young != nil {
		t.Errorf("a transaction below the limit is told of: %+v", young)
	}
	s.name("dir/p.yaml")
	var out bytes.Buffer
	if err := s.write(&out); err != nil {
		t.Fatal(err)
	}
	want := `group g, topic t
PARTITION  OWNER   EPOCH  NEXT  END  LAG  DRIFT  RETENTION  PROCESSED  DUPLICATES  BY PRODUCER  BY REDELIVERY  DEAD LETTERS  STATE
0          host/1  3      90    120  10   -5     1d2h       80         6           4            2              1             open
1          -       0      -     20   15   -      -          0          0           0            0              0             not begun
2          -       1      9     9    0    -      none       9          0           0            0              0             halted: decode
3          host/1  1      100   500  0    +30    lost 400   100        0           0            0              0             open
all                                  25                     189        6           4            2              1             halted
t/2 is halted at offset 9: decode: bad
  to resolve it: oncestream offsets skip dir/p.yaml --partition 2
the vacuum is held back for 10m0s, with 44 dead rows of positions, by session, pid 7, user "ann", application "psql", state "idle in transaction"
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
