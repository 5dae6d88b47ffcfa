package sinks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// Where the constraint of the table is the only guard, duplicates are common and
// each batch must tell them. The look-up is the short cut and the constraint
// stays the guard: a first try asks which keys are there and copies the other
// rows, sorted by key; a row that another transaction has written since is met by
// the COPY, and the batch is contested and takes the careful statement.
//
// The order by key has two reasons. Two transactions that write the same keys in
// different orders wait for each other in a circle; and neighbours in the index
// are written together, which alone takes a tenth off the server's CPU with
// random keys in a table of two million rows.

// keyed are the keys of a shape's rows.
type keyed struct {
	rows  []span // of the stream of the shape
	keys  []span // of cells
	cells []byte // the key's cells of all rows
	// What is used again for the next batch: the stream of the rows that are left,
	// the order of the rows, and the parameters.
	spare  []byte
	order  []int
	arrays []*array
}

type span struct{ from, to int }

func (k *keyed) reset() {
	k.rows, k.keys, k.cells = k.rows[:0], k.keys[:0], k.cells[:0]
}

// add notes a row of the stream, and its key.
func (k *keyed) add(at span, targets []target, row cells) {
	start := len(k.cells)
	for i := range targets {
		if targets[i].key {
			k.cells = append(k.cells, row[i]...)
		}
	}
	k.rows, k.keys = append(k.rows, at), append(k.keys, span{start, len(k.cells)})
}

func (k *keyed) key(row int) []byte { return k.cells[k.keys[row].from:k.keys[row].to] }

// firsts returns the rows in the order of their keys, of each key the first row;
// repeat is called for the others. Keys that PostgreSQL holds equal have equal
// bytes as a rule, see [target]; where they have not, the COPY meets them.
func (k *keyed) firsts(repeat func(row int)) []int {
	order := k.order[:0]
	for row := range k.rows {
		order = append(order, row)
	}
	k.order = order
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(bytes.Compare(k.key(a), k.key(b)), a-b) })
	firsts := order[:0]
	for _, row := range order {
		if n := len(firsts); n > 0 && bytes.Equal(k.key(firsts[n-1]), k.key(row)) {
			repeat(row)
		} else {
			firsts = append(firsts, row)
		}
	}
	return firsts
}

// params are the key's columns of the rows, as arrays.
func (k *keyed) params(key []*target, rows []int) arrays {
	for len(k.arrays) < len(key) {
		k.arrays = append(k.arrays, &array{})
	}
	params := arrays(k.arrays[:len(key)])
	for i, t := range key {
		params[i].reset(t.carrier)
	}
	for _, row := range rows {
		rest := k.key(row)
		for i := range params {
			size := 4 + int(binary.BigEndian.Uint32(rest)) // no part of a key is null
			params[i].append(rest[:size])
			rest = rest[size:]
		}
	}
	return params
}

// keep leaves only the given rows, in their order.
func (sh *shape) keep(rows []int) {
	stream := sh.keyed.spare[:0]
	stream = append(stream, copyHeader...)
	places := make([]int, len(rows))
	for i, row := range rows {
		at := sh.keyed.rows[row]
		stream, places[i] = append(stream, sh.stream[at.from:at.to]...), sh.places[row]
	}
	sh.stream, sh.keyed.spare, sh.places = stream, sh.stream, places
}

// checkLookUp refuses a look-up that has no key to look for.
func (s *Insert[T]) checkLookUp(rule ConflictRule) error {
	if s.LookUp && rule != ConflictDuplicate {
		return errors.New("a look-up needs on_conflict duplicate and a unique index on exactly the columns of the idempotency key")
	}
	return nil
}

// writeNew copies the rows of a shape whose key is not there, and notes the
// others as duplicates.
func (p *insertPlan[T]) writeNew(ctx context.Context, tx pgx.Tx, sh *shape, batch []schema.Message[T], all *outcomes) error {
	firsts := sh.keyed.firsts(func(row int) { all.at(sh.places[row]).Duplicate = true })
	there, err := p.present(ctx, tx, sh, firsts)
	if err != nil {
		return err
	}
	fresh := make([]int, 0, len(firsts))
	for i, row := range firsts {
		if len(there) > 0 && there[0] == int64(i+1) {
			there = there[1:]
			all.at(sh.places[row]).Duplicate = true
		} else {
			fresh = append(fresh, row)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	sh.keep(fresh)
	return p.writeCopy(ctx, tx, sh, batch)
}

// present returns those of the rows whose key is in the table, by their number
// from 1, in order. The statement is planned each time: a plan from when the
// table was small could read all of it for each key.
func (p *insertPlan[T]) present(ctx context.Context, tx pgx.Tx, sh *shape, rows []int) ([]int64, error) {
	var key []*target
	for _, t := range sh.targets {
		if t.key {
			key = append(key, t)
		}
	}
	found, err := tx.Query(ctx, presentSQL(p.table, key), pgx.QueryExecModeCacheDescribe, sh.keyed.params(key, rows))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowTo[int64])
}

// presentSQL answers with the places of the keys that have a row. The limit
// keeps the planner from joining the whole table where the keys are many.
func presentSQL(t *Table, key []*target) string {
	return fmt.Sprintf("select u.n\nfrom %s\ncross join lateral (select from %s as t where %s limit 1) as there\norder by u.n",
		source(key, true), t.ref(), matches(key))
}
