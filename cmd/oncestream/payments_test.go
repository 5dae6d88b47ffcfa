package main

import (
	"bytes"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/oncestream/oncestream/schema"
)

// all returns all records of a generator, taken n at a time.
func all(p payments, n int) []schema.Record {
	var list []schema.Record
	for {
		batch := p.next(n)
		if len(batch) == 0 {
			return list
		}
		list = append(list, batch...)
	}
}

func testPayments() payments {
	return payments{seed: 3, records: 2000, duplicates: 0.1, partitions: 4, size: 200}
}

// The same options give the same records, however they are taken; another seed
// gives others.
func TestPaymentsDeterministic(t *testing.T) {
	one, other := all(testPayments(), 7), all(testPayments(), 1000)
	if diff := cmp.Diff(one, other); diff != "" {
		t.Fatal(diff)
	}
	p := testPayments()
	p.seed++
	if bytes.Equal(all(p, 100)[0].Value, one[0].Value) {
		t.Error("another seed gives the same first payment")
	}
}

// The number of repeats is exact, and a repeat is the same bytes and record key
// as a payment sent before, some of them in another partition.
func TestPaymentsRepeats(t *testing.T) {
	seen := map[string]schema.Record{}
	repeats, moved := 0, 0
	for _, r := range all(testPayments(), 500) {
		before, again := seen[eventID(t, r)]
		if !again {
			seen[eventID(t, r)] = r
			continue
		}
		repeats++
		if !bytes.Equal(before.Value, r.Value) || !bytes.Equal(before.Key, r.Key) {
			t.Fatalf("a repeat differs:\n%s\n%s", before.Value, r.Value)
		}
		if before.Partition != r.Partition {
			moved++
		}
	}
	if repeats != 200 || len(seen) != 1800 {
		t.Errorf("%d repeats of %d payments, want 200 of 1800", repeats, len(seen))
	}
	if moved == 0 || moved == repeats {
		t.Errorf("%d of %d repeats are in another partition, want some", moved, repeats)
	}
}

// A payment is valid JSON of the asked size, its record key is the customer, its
// id a UUID of version 7, and all partitions are used.
func TestPaymentsShape(t *testing.T) {
	used := map[int32]bool{}
	for _, r := range all(testPayments(), 500) {
		var p struct {
			Event    uuid.UUID   `json:"event_id"`
			Customer json.Number `json:"customer_id"`
			Currency string      `json:"currency"`
		}
		if err := json.Unmarshal(r.Value, &p); err != nil {
			t.Fatal(err)
		}
		if p.Event.Version() != 7 || p.Event.Variant() != uuid.RFC4122 || p.Customer.String() != string(r.Key) || len(p.Currency) != 3 {
			t.Fatalf("got %+v with record key %s", p, r.Key)
		}
		if n := len(r.Value); n < 200 || n > 230 {
			t.Fatalf("%d bytes: %s", n, r.Value)
		}
		used[r.Partition] = true
	}
	if len(used) != 4 {
		t.Errorf("partitions %v are used, want 4", used)
	}
}

// The tally agrees with a sum in rationals over the distinct payments, taken by
// another JSON decoder.
func TestTally(t *testing.T) {
	records := all(testPayments(), 500)
	tally := newTally()
	if err := tally.add(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	sum, seen := new(big.Rat), map[string]bool{}
	for _, r := range records {
		if id := eventID(t, r); !seen[id] {
			seen[id] = true
			var p struct {
				Amount json.Number `json:"amount"`
			}
			if err := json.Unmarshal(r.Value, &p); err != nil {
				t.Fatal(err)
			}
			amount, ok := new(big.Rat).SetString(p.Amount.String())
			if !ok {
				t.Fatalf("amount %s", p.Amount)
			}
			sum.Add(sum, amount)
		}
	}
	got := []any{tally.sent, tally.distinct, tally.sum.Text('f')}
	want := []any{int64(2000), int64(1800), sum.FloatString(2)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func eventID(t *testing.T, r schema.Record) string {
	t.Helper()
	var p struct {
		Event string `json:"event_id"`
	}
	if err := json.Unmarshal(r.Value, &p); err != nil {
		t.Fatal(err)
	}
	return p.Event
}

// Numbers are written with their thousands apart.
func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is written %s", n, got)
		}
	}
}
