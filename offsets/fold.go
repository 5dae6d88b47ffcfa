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

func newFolded(entries []Entry) *folded {
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
	return []any{
		column{f.entries, f.order, keyCell},
		column{f.entries, f.order, offsetCell},
		column{f.entries, f.order, sumCell},
		f.entries[0].Partition, handler,
	}
}

// readInserted marks the keys that the insert has returned.
func (f *folded) readInserted(rows pgx.Rows) error {
	var key pgtype.UUID
	_, err := pgx.ForEachRow(rows, []any{&key}, func() error {
		f.fresh[f.index[key.Bytes]] = true
		f.inserted++
		return nil
	})
	return err
}

// lost returns the places of the keys that were not inserted.
func (f *folded) lost() []int {
	var places []int
	for _, place := range f.order {
		if !f.fresh[place] {
			places = append(places, place)
		}
	}
	return places
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
