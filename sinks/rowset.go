package sinks

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// cells are the encoded values of one row, each with its length before it; a
// cell of no bytes is missing. They share the memory of a batch.
type cells [][]byte

// rowset gathers the rows of a batch by shape, which is the set of columns that
// are not missing: one statement writes all rows of a shape. It is used again
// for the next batch, to keep the memory.
type rowset struct {
	targets []target
	shapes  []*shape
	used    int
	bits    []byte // scratch: the shape of a row
	copying bool   // rows are gathered for COPY, not for parameters,
	keyed   bool   // and their keys beside them
}

// shape holds the rows that have the same columns.
type shape struct {
	bits    []byte
	targets []*target
	params  []*array // the rows by column,
	stream  []byte   // or one after the other, for COPY
	keyed   keyed
	places  []int // of each row: the place in the batch of the message to blame
}

func newRowset(targets []target) *rowset {
	return &rowset{targets: targets, bits: make([]byte, (len(targets)+7)/8)}
}

func (s *rowset) reset() { s.used, s.copying, s.keyed = 0, false, false }

// filled are the shapes that have rows, in the order of their first row.
func (s *rowset) filled() []*shape { return s.shapes[:s.used] }

// add appends a row to its shape; place is that of the message to blame for it.
func (s *rowset) add(row cells, place int) {
	clear(s.bits)
	for i, cell := range row {
		if len(cell) > 0 {
			s.bits[i/8] |= 1 << (i % 8)
		}
	}
	sh := s.find()
	sh.places = append(sh.places, place)
	if s.copying {
		from := len(sh.stream)
		sh.stream = copyRow(sh.stream, len(sh.targets), row)
		if s.keyed {
			sh.keyed.add(span{from, len(sh.stream)}, s.targets, row)
		}
		return
	}
	next := 0
	for _, cell := range row {
		if len(cell) > 0 {
			sh.params[next].append(cell)
			next++
		}
	}
}

// find looks through the shapes one by one: there is nearly always one.
func (s *rowset) find() *shape {
	for _, sh := range s.shapes[:s.used] {
		if bytes.Equal(sh.bits, s.bits) {
			return sh
		}
	}
	if s.used == len(s.shapes) {
		s.shapes = append(s.shapes, &shape{})
	}
	sh := s.shapes[s.used]
	s.used++
	sh.begin(s.targets, s.bits)
	return sh
}

func (sh *shape) begin(targets []target, bits []byte) {
	sh.bits = append(sh.bits[:0], bits...)
	sh.targets, sh.places = sh.targets[:0], sh.places[:0]
	sh.stream = append(sh.stream[:0], copyHeader...)
	sh.keyed.reset()
	n := 0
	for i := range targets {
		if bits[i/8]&(1<<(i%8)) == 0 {
			continue
		}
		if n == len(sh.params) {
			sh.params = append(sh.params, &array{})
		}
		sh.params[n].reset(targets[i].carrier)
		sh.targets = append(sh.targets, &targets[i])
		n++
	}
}

// has reports whether the shape has the i-th column.
func (sh *shape) has(i int) bool { return sh.bits[i/8]&(1<<(i%8)) != 0 }

func (sh *shape) args() arrays { return sh.params[:len(sh.targets)] }

// exec runs one statement. The error keeps PostgreSQL's own within it.
func exec(ctx context.Context, tx pgx.Tx, what, sql string, args arrays) error {
	if _, err := tx.Exec(ctx, sql, args); err != nil {
		return fmt.Errorf("sinks: %s: %w", what, err)
	}
	return nil
}
