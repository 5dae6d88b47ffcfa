package offsets

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// folded is the entries of a batch with repeated keys folded into their first
// entry, and what the server has said of them.
type folded struct {
	entries  []Entry
	index    map[[16]byte]int // the place of a key's first entry
	order    []int            // the places of the first entries
	fresh    []bool           // by place; marked at first entries only
	inserted int
	found    map[[16]byte]Admission // keys that were there before
}

func fold(entries []Entry) *folded {
	f := &folded{entries: entries, index: make(map[[16]byte]int, len(entries)), fresh: make([]bool, len(entries))}
	f.order = make([]int, 0, len(entries))
	for i := range entries {
		if _, ok := f.index[entries[i].Key]; !ok {
			f.index[entries[i].Key] = i
			f.order = append(f.order, i)
		}
	}
	return f
}

// args are the parameters of sqlAdmit.
func (f *folded) args(handler int16) []any {
	keys := make(pgtype.FlatArray[pgtype.UUID], len(f.order))
	offsets, sums := make([]int64, len(f.order)), make([]int64, len(f.order))
	for i, place := range f.order {
		e := &f.entries[place]
		keys[i] = pgtype.UUID{Bytes: e.Key, Valid: true}
		offsets[i], sums[i] = e.Offset, e.PayloadSum
	}
	return []any{keys, offsets, sums, f.entries[0].Partition, handler}
}

// readInserted marks the keys that the insert has returned.
func (f *folded) readInserted(rows pgx.Rows) error {
	defer rows.Close()
	for rows.Next() {
		var key pgtype.UUID
		if err := rows.Scan(&key); err != nil {
			return err
		}
		f.fresh[f.index[key.Bytes]] = true
		f.inserted++
	}
	return rows.Err()
}

// lost returns the keys that were not inserted.
func (f *folded) lost() pgtype.FlatArray[pgtype.UUID] {
	var keys pgtype.FlatArray[pgtype.UUID]
	for _, place := range f.order {
		if !f.fresh[place] {
			keys = append(keys, pgtype.UUID{Bytes: f.entries[place].Key, Valid: true})
		}
	}
	return keys
}

// readFound keeps what is known of the keys that were there before.
func (f *folded) readFound(rows pgx.Rows) error {
	defer rows.Close()
	f.found = make(map[[16]byte]Admission)
	for rows.Next() {
		var key pgtype.UUID
		var a Admission
		if err := rows.Scan(&key, &a.First.Partition, &a.First.Offset, &a.First.PayloadSum, &a.ProcessedAt, &a.Result); err != nil {
			return err
		}
		a.First.Key = key.Bytes
		f.found[key.Bytes] = a
	}
	return rows.Err()
}

// admissions answers for each entry in order.
func (f *folded) admissions() []Admission {
	answers := make([]Admission, len(f.entries))
	for i := range f.entries {
		e := &f.entries[i]
		if f.fresh[i] {
			answers[i] = Admission{Outcome: Fresh}
			continue
		}
		first, ok := f.found[e.Key]
		if !ok { // admitted within this very batch
			first = Admission{First: f.entries[f.index[e.Key]]}
		}
		answers[i] = first.of(e)
	}
	return answers
}

// of says what it means that the entry e meets the key admitted as a.First.
func (a Admission) of(e *Entry) Admission {
	a.Outcome, a.Cause = Duplicate, Producer
	switch {
	case a.First.Partition == e.Partition && a.First.Offset == e.Offset:
		a.Cause = Redelivery
	case a.First.PayloadSum != e.PayloadSum:
		a.Outcome = Conflict
	}
	return a
}
