package offsets

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// folded is the entries of a batch with repeated keys folded into their first
// entry, and what the server has said of them. An entry is named by its place.
type folded struct {
	entries []Entry
	first   []int             // by place: the place of the first entry that has its key
	order   []int             // the places of the first entries, sorted by their keys
	fresh   []bool            // by place; marked at first entries only
	found   map[int]Admission // keys that were there before

	inserted int
}

// newFolded sorts the entries by their keys, which costs less than a map of them
// and is how they are written: so that the transactions of two partitions that
// share keys meet them in one order.
func newFolded(entries []Entry) *folded {
	f := &folded{entries: entries, first: make([]int, len(entries)), fresh: make([]bool, len(entries))}
	f.order = make([]int, 0, len(entries))
	sorted := sortedKeys(entries)
	for i := range sorted {
		k := &sorted[i]
		if i > 0 && k.high == sorted[i-1].high && k.low == sorted[i-1].low {
			f.first[k.place] = f.order[len(f.order)-1]
			continue
		}
		f.first[k.place] = k.place
		f.order = append(f.order, k.place)
	}
	return f
}

// sortableKey is a key as two numbers that compare as its bytes do.
type sortableKey struct {
	high, low uint64
	place     int
}

// sortedKeys sorts equal keys by their place, so that the lowest offset is first.
func sortedKeys(entries []Entry) []sortableKey {
	keys := make([]sortableKey, len(entries))
	for i := range entries {
		k := &entries[i].Key
		keys[i] = sortableKey{binary.BigEndian.Uint64(k[:8]), binary.BigEndian.Uint64(k[8:]), i}
	}
	slices.SortFunc(keys, func(a, b sortableKey) int {
		switch {
		case a.high != b.high:
			return cmp.Compare(a.high, b.high)
		case a.low != b.low:
			return cmp.Compare(a.low, b.low)
		}
		return a.place - b.place
	})
	return keys
}

// args are the parameters of sqlAdmit.
func (f *folded) args(handler int16) []any {
	return []any{
		column{f.entries, f.order, keyCell},
		column{f.entries, f.order, offsetCell},
		column{f.entries, f.order, sumCell},
		f.entries[0].Partition, handler,
	}
}

// place returns the place of the first entry that has the key.
func (f *folded) place(key [16]byte) int {
	i, _ := slices.BinarySearchFunc(f.order, key, func(place int, key [16]byte) int {
		return bytes.Compare(f.entries[place].Key[:], key[:])
	})
	return f.order[i]
}

// readInserted marks the keys that the insert has returned.
func (f *folded) readInserted(rows pgx.Rows) error {
	var key pgtype.UUID
	_, err := pgx.ForEachRow(rows, []any{&key}, func() error {
		f.fresh[f.place(key.Bytes)] = true
		f.inserted++
		return nil
	})
	return err
}

// rest returns the places of the keys that were neither inserted nor found.
func (f *folded) rest() []int {
	places := make([]int, 0, len(f.order)-len(f.found))
	for _, place := range f.order {
		if f.fresh[place] {
			continue
		}
		if _, ok := f.found[place]; !ok {
			places = append(places, place)
		}
	}
	return places
}

// readFound keeps what is known of the keys that were there before.
func (f *folded) readFound(rows pgx.Rows) error {
	defer rows.Close()
	f.found = make(map[int]Admission)
	for rows.Next() {
		var key pgtype.UUID
		var a Admission
		if err := rows.Scan(&key, &a.First.Partition, &a.First.Offset, &a.First.PayloadSum, &a.ProcessedAt, &a.Result); err != nil {
			return err
		}
		a.First.Key = key.Bytes
		f.found[f.place(key.Bytes)] = a
	}
	return rows.Err()
}

// admissions answers for each entry in order.
func (f *folded) admissions() []Admission {
	answers := make([]Admission, len(f.entries))
	for i := range f.entries {
		if f.fresh[i] {
			answers[i].Outcome = Fresh
			continue
		}
		e, place := &f.entries[i], f.first[i]
		first, ok := f.found[place]
		if !ok { // admitted within this very batch
			first = Admission{First: f.entries[place]}
		}
		answers[i] = first.of(e)
	}
	return answers
}

// of says what it means that the entry e meets the key admitted as a.First. The
// payload is compared first: a position says the same only as long as the topic
// is the same, and the topics of one handler share their keys.
func (a Admission) of(e *Entry) Admission {
	switch {
	case a.First.PayloadSum != e.PayloadSum:
		a.Outcome = Conflict
	case a.First.Partition == e.Partition && a.First.Offset == e.Offset:
		a.Outcome, a.Cause = Duplicate, Redelivery
	default:
		a.Outcome, a.Cause = Duplicate, Producer
	}
	return a
}
