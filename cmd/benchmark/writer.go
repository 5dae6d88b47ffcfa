//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The statements of the product's batch, on the ceiling's tables.
const (
	advancePosition = `update ceiling.position set next_offset = $3, records = records + $4, updated_at = now() where partition = $1 and next_offset = $2`
	findKeys        = `select key from ceiling.key where handler = 1 and key = any ($1::uuid[])`
	copyKeys        = `copy ceiling.key (key, record_offset, payload_sum, partition, handler) from stdin (format binary)`
)

// uuidOID is the type of a uuid in the header of an array (pg_type.dat).
const uuidOID = 2950

// writer writes loads over one connection, by pgconn alone: parameters are bytes.
type writer struct {
	conn  *pgx.Conn
	order []int // places of a load's payments, sorted by their keys
	known map[[16]byte]bool
	rows  []byte
}

func newWriter(ctx context.Context, conn *pgx.Conn) (*writer, error) {
	for name, sql := range map[string]string{"begin": "begin", "advance": advancePosition, "find": findKeys} {
		if _, err := conn.PgConn().Prepare(ctx, name, sql, nil); err != nil {
			return nil, err
		}
	}
	return &writer{conn: conn}, nil
}

// write commits a load. Where another worker has brought one of its keys at the
// same moment, it looks again.
func (w *writer) write(ctx context.Context, l *load) error {
	for {
		err := w.try(ctx, l)
		server, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || server.Code != "23505" {
			return err
		}
		if err := w.conn.PgConn().Exec(ctx, "rollback").Close(); err != nil {
			return err
		}
	}
}

func (w *writer) try(ctx context.Context, l *load) error {
	w.sort(l)
	if err := w.begin(ctx, l); err != nil {
		return err
	}
	keys, rows, err := w.encode(l)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		sql  string
		data []byte
	}{{copyKeys, keys}, {copyPayments, rows}} {
		if _, err := w.conn.PgConn().CopyFrom(ctx, bytes.NewReader(c.data), c.sql); err != nil {
			return err
		}
	}
	return w.conn.PgConn().Exec(ctx, "commit").Close()
}

// sort orders the load by its keys, and of equal ones keeps the first.
func (w *writer) sort(l *load) {
	w.order = w.order[:0]
	for i := range l.payments {
		w.order = append(w.order, i)
	}
	slices.SortFunc(w.order, func(a, b int) int {
		return cmp.Or(bytes.Compare(l.payments[a].id[:], l.payments[b].id[:]), a-b)
	})
	w.order = slices.CompactFunc(w.order, func(a, b int) bool { return l.payments[a].id == l.payments[b].id })
}

// begin sends the begin, the advance and the look-up of the keys at once.
func (w *writer) begin(ctx context.Context, l *load) error {
	number := func(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) } //nolint:gosec // the bits are the same
	partition := binary.BigEndian.AppendUint32(nil, uint32(l.partition))                    //nolint:gosec // the bits are the same
	binaryFormat := []int16{1}
	p := w.conn.PgConn().StartPipeline(ctx)
	p.SendQueryPrepared("begin", nil, nil, nil)
	p.SendQueryPrepared("advance", [][]byte{partition, number(l.from), number(l.to), number(int64(len(l.payments)))}, binaryFormat, nil)
	p.SendQueryPrepared("find", [][]byte{w.keys(l)}, binaryFormat, binaryFormat)
	err := p.Sync()
	for step := 0; err == nil && step < 4; step++ {
		err = w.answer(p, step)
	}
	return errors.Join(err, p.Close())
}

// answer reads the answer to a step of begin.
func (w *writer) answer(p *pgconn.Pipeline, step int) error {
	result, err := p.GetResults()
	if err != nil {
		return err
	}
	reader, ok := result.(*pgconn.ResultReader)
	if !ok {
		return nil // the end of the pipeline
	}
	if step == 2 {
		w.known = map[[16]byte]bool{}
	}
	for reader.NextRow() {
		w.known[[16]byte(reader.Values()[0])] = true
	}
	tag, err := reader.Close()
	if err == nil && step == 1 && tag.RowsAffected() != 1 {
		err = fmt.Errorf("the advance moved %d rows", tag.RowsAffected())
	}
	return err
}

// keys is a binary array (array_recv) of the load's keys.
func (w *writer) keys(l *load) []byte {
	b := make([]byte, 0, 20+20*len(w.order))
	for _, n := range []int{1, 0, uuidOID, len(w.order), 1} { // dimensions, no nulls, type, length, lower bound
		b = binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // small
	}
	for _, i := range w.order {
		b = append(append(b, 0, 0, 0, 16), l.payments[i].id[:]...)
	}
	return b
}

// encode writes the new keys in their order, and the new rows in that of their
// offsets.
func (w *writer) encode(l *load) (keys, rows []byte, err error) {
	w.order = slices.DeleteFunc(w.order, func(i int) bool { return w.known[l.payments[i].id] })
	keys = append(make([]byte, 0, 64*len(w.order)+32), copyHeader...)
	for _, i := range w.order {
		keys = l.payments[i].appendKey(keys, l.partition)
	}
	slices.Sort(w.order)
	w.rows = append(w.rows[:0], copyHeader...)
	for _, i := range w.order {
		if w.rows, err = l.payments[i].appendRow(w.rows); err != nil {
			return nil, nil, err
		}
	}
	w.rows = append(w.rows, copyTrailer...)
	return append(keys, copyTrailer...), w.rows, nil
}
