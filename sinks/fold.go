package sinks

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// fold finds the place of a key among the keys of a batch, so that each key
// becomes one row: a statement cannot hit a row twice (SQLSTATE 21000).
type fold struct {
	index map[string]int
	keys  [][]byte // by place: the key's cells, one after the other
	arena []byte
	order []int
}

func newFold() *fold { return &fold{index: make(map[string]int)} }

func (f *fold) reset() {
	clear(f.index)
	clear(f.keys)
	f.keys, f.arena = f.keys[:0], f.arena[:0]
}

// place returns the place of the key, and whether it is new.
func (f *fold) place(key []byte) (at int, added bool) {
	if at, ok := f.index[string(key)]; ok {
		return at, false
	}
	start := len(f.arena)
	f.arena = append(f.arena, key...)
	f.keys = append(f.keys, f.arena[start:len(f.arena):len(f.arena)])
	f.index[string(key)] = len(f.keys) - 1
	return len(f.keys) - 1, true
}

// sorted returns the places by key, in the one order that all workers share, so
// that two transactions that meet lock rows in the same order.
func (f *fold) sorted() []int {
	f.order = f.order[:0]
	for i := range f.keys {
		f.order = append(f.order, i)
	}
	slices.SortFunc(f.order, func(a, b int) int { return bytes.Compare(f.keys[a], f.keys[b]) })
	return f.order
}

// appendKey appends each cell of a key to its parameter.
func appendKey(params []*array, key []byte) {
	for i := 0; len(key) > 0; i++ {
		size := 4
		if n := binary.BigEndian.Uint32(key); n != nullLength {
			size += int(n)
		}
		params[i].append(key[:size])
		key = key[size:]
	}
}
