package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// A value that was too large to keep is neither taken for a tombstone nor for an
// empty one, and bytes that are no text do nothing to a terminal.
func TestLetterText(t *testing.T) {
	at := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	d := offsets.StoredDeadLetter{
		ID: 7, Record: schema.Record{Topic: "t", Partition: 2, Offset: 40, Time: at, Key: []byte("k\x00"), Headers: []schema.Header{{Key: "none"}}},
		Reason: schema.ReasonTooLarge, Detail: `row "a\"b" is too large`, ValueSize: 2 << 20, ByPosition: true, Parked: true, State: offsets.StateDead, CreatedAt: at,
	}
	var out bytes.Buffer
	writeLetter(&out, &d, at.Add(90*time.Minute), false)
	want := `dead letter 7: t/2@40
  state        dead, parked
  reason       too_large
  detail       row "…" is too large
  set aside    2026-01-31T08:00:00Z (90m ago)
  record time  2026-01-31T08:00:00Z
  record key   "k\x00"
  header       none = null
  value        2097152 bytes, kept by its position in the topic: it was too large to keep here
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if e := export(&d, true); !e.ByPosition || e.Value != nil || e.ValueBase64 != nil {
		t.Errorf("the export has a value that is not there: %+v", e)
	}
}

// A value of no bytes is one, other than a tombstone.
func TestLetterEmptyValue(t *testing.T) {
	e := export(&offsets.StoredDeadLetter{Record: schema.Record{Value: []byte{}}}, true)
	if e.Value == nil || *e.Value != "" || e.ByPosition {
		t.Errorf("got %+v", e)
	}
}

// What a detail quotes is left out, also where quotes are in it; what it quotes
// does nothing to a terminal.
func TestDetailText(t *testing.T) {
	const detail = "field a: \"x\\\"y\x1b[2J\" is none, \"b\" neither\n\tat c"
	for reveal, want := range map[bool]string{
		false: "field a: \"…\" is none, \"…\" neither\n\tat c",
		true:  "field a: \"x\\\"y\\x1b[2J\" is none, \"b\" neither\n\tat c",
	} {
		if got := detailText(detail, reveal); got != want {
			t.Errorf("revealed %v: %q, want %q", reveal, got, want)
		}
	}
}

// An age is told in a unit that a person would choose.
func TestAgeText(t *testing.T) {
	for age, want := range map[time.Duration]string{
		-time.Second: "0s", 119 * time.Second: "119s", 2 * time.Minute: "2m", 119 * time.Minute: "119m", 47 * time.Hour: "47h", 48 * time.Hour: "2d",
	} {
		if got := ageText(age); got != want {
			t.Errorf("%v is told as %s, want %s", age, got, want)
		}
	}
}
