package offsets_test

import (
	"slices"
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Proves that a halted partition is told from one that a person has moved, one
// that was opened, and one that is gone, and that one which the ledger was never
// told to be halted is not taken for opened.
func TestDecided(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	id := offsets.Identity{ClusterID: "c", TopicID: [16]byte{1}}
	claims, _, err := ledger.Claim(t.Context(), db.Pool, "A", id, []offsets.Assigned{{Partition: 0}, {Partition: 1}, {Partition: 2}, {Partition: 3}})
	if err != nil {
		t.Fatal(err)
	}
	var halted []offsets.Halted
	for _, c := range claims {
		if c.Partition != 3 {
			if err := ledger.Halt(t.Context(), db.Pool, c, "because"); err != nil {
				t.Fatal(err)
			}
		}
		halted = append(halted, offsets.Halted{Partition: c.Partition, Epoch: c.Epoch, Noted: c.Partition != 3})
	}
	decided := func(want ...int32) {
		t.Helper()
		got, err := ledger.Decided(t.Context(), db.Pool, halted)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v %v, want %v", got, err, want)
		}
	}
	decided()
	db.Exec(`update consumer_offset set epoch = epoch + 1 where partition = 0`)
	decided(0)
	db.Exec(`update consumer_offset set state = 'open', reason = null where partition = 1`)
	decided(0, 1)
	db.Exec(`delete from consumer_offset where partition = 2`)
	decided(0, 1, 2)
}

// Proves that a refusal is noted in the ledger, but not over the head of a worker
// that holds the partition on another cluster, nor after a person has decided.
func TestHaltRefused(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	here := offsets.Identity{ClusterID: "here", TopicID: [16]byte{1}}
	one := []offsets.Assigned{{Partition: 0}}
	claims, _, err := ledger.Claim(t.Context(), db.Pool, "A", here, one)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(seen offsets.Identity) offsets.Refusal {
		t.Helper()
		_, refusals, err := ledger.Claim(t.Context(), db.Pool, "B", seen, one)
		if err != nil || len(refusals) != 1 {
			t.Fatal(refusals, err)
		}
		return refusals[0]
	}
	note := func(r offsets.Refusal, want bool, state string) {
		t.Helper()
		noted, err := ledger.HaltRefused(t.Context(), db.Pool, r, "because")
		if got := db.Value(`select state || coalesce(' ' || reason, '') from consumer_offset`); err != nil || noted != want || got != state {
			t.Errorf("noted %v %v, want %v; the ledger says %q, want %q", noted, err, want, got, state)
		}
	}
	elsewhere := refuse(offsets.Identity{ClusterID: "there", TopicID: [16]byte{2}})
	note(elsewhere, false, "open")
	if err := ledger.Release(t.Context(), db.Pool, claims); err != nil {
		t.Fatal(err)
	}
	note(elsewhere, true, "halted because")
	db.Exec(`update consumer_offset set state = 'open', reason = null, owner = 'A'`)
	note(refuse(offsets.Identity{ClusterID: "here", TopicID: [16]byte{2}}), true, "halted because")
	db.Exec(`update consumer_offset set epoch = epoch + 1, state = 'open', reason = null`)
	note(elsewhere, false, "open")
}

// Proves that a halted partition can be opened where it stands, which reads
// nothing again and is written down, and that one which is open cannot.
func TestOpenedWhereItStands(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	claims, _, err := ledger.Claim(t.Context(), db.Pool, "A", offsets.Identity{ClusterID: "c", TopicID: [16]byte{1}}, []offsets.Assigned{{Partition: 0, Start: 7}})
	if err != nil {
		t.Fatal(err)
	}
	open := func() error {
		_, err := ledger.Apply(t.Context(), db.Pool, []offsets.Change{{Action: offsets.Rewind, To: 7}}, offsets.Note{By: "ada", Reason: "the table is back"}, 0)
		return err
	}
	if err := open(); err == nil {
		t.Error("an open partition was opened")
	}
	if err := ledger.Halt(t.Context(), db.Pool, claims[0], "because"); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Error(err)
	}
	if got := db.Value(`select format('%s %s %s %s', state, next_offset, rewound, epoch) from consumer_offset`); got != "open 7 0 2" {
		t.Errorf("state, next, rewound, epoch: %s", got)
	}
	if got := db.Value(`select count(*) from offset_change`); got != "1" {
		t.Errorf("%s changes were written down", got)
	}
}
