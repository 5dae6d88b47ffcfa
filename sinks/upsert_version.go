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
	"github.com/jackc/pgx/v5/pgtype"
)

// With versions, what a message does depends on the row that is there, and so
// does what a later message of its key does: one that is older than the row is
// left out, one that is newer is not, and in merge mode they bring different
// fields. So the rows are locked and their versions read, and the changes are
// then made in memory in the order of the batch, one by one: the batch does what
// its messages would do alone. A row that was not there cannot be locked; the
// statements compare the versions again, so that one that another worker has
// inserted meanwhile is never set back.

var errRaced = errors.New("another worker has meanwhile written the row of a key that had none: to be tried again")

// settle reads the versions of the keys and makes the changes that are not
// older, in their order.
func (p *upsertPlan[T]) settle(ctx context.Context, tx pgx.Tx, m *upsertMemory, all *outcomes) error {
	if p.version < 0 || len(m.changes) == 0 {
		return nil
	}
	if err := p.lock(ctx, tx, m); err != nil {
		return err
	}
	for _, c := range m.changes {
		if p.older(c.row[p.version], m.states[c.key].version) {
			all.at(c.place).Stale = true
		} else {
			p.enter(m, c)
		}
	}
	return nil
}

// lock locks the rows of the keys, in their order, and notes their versions.
func (p *upsertPlan[T]) lock(ctx context.Context, tx pgx.Tx, m *upsertMemory) error {
	var key []*target
	for n, i := range p.key {
		t := &p.encoder.targets[i]
		key = append(key, t)
		m.params[n].reset(t.carrier)
	}
	order := m.keys.sorted()
	for _, place := range order {
		appendKey(m.params, m.keys.keys[place])
	}
	sql := lockSQL(p.table, key, p.encoder.targets[p.version].Name)
	rows, err := tx.Query(ctx, sql, pgx.QueryResultFormats{pgx.BinaryFormatCode, pgx.BinaryFormatCode}, m.params)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		n := binary.BigEndian.Uint64(rows.RawValues()[0])
		if version := rows.RawValues()[1]; version != nil {
			cell := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(version)), uint32(len(version)))
			cell = append(cell, version...)
			m.states[order[n-1]].version = cell
		}
	}
	return rows.Err()
}

// older reports whether the version is older than that of the row. A row
// without a version is older than any; one of the same version is not newer.
func (p *upsertPlan[T]) older(version, row []byte) bool {
	return len(row) > 0 && compareVersions(p.encoder.targets[p.version].BaseOID, version[4:], row[4:]) < 0
}

// checkVersion finds the column of the versions: its place, or -1 for none.
func (s *Upsert[T]) checkVersion(columns []bound[T]) (int, error) {
	if s.Version == "" {
		return -1, nil
	}
	i := slices.IndexFunc(columns, func(c bound[T]) bool { return c.Name == s.Version })
	switch {
	case i < 0:
		return -1, fmt.Errorf("version column %q is not written: give it among Columns", s.Version)
	case columns[i].key:
		return -1, fmt.Errorf("version column %q is part of the key", s.Version)
	case !ordered(columns[i].BaseOID):
		return -1, fmt.Errorf("version column %q is a %s, and versions are compared as smallint, integer, bigint, numeric, date, timestamp, timestamptz or uuid", s.Version, columns[i].Type)
	case !columns[i].OfRecord && orDefault(s.Tombstone, TombstoneDelete) == TombstoneDelete:
		return -1, fmt.Errorf("version column %q is written from field %s, which a tombstone does not have: take it from a pseudo-field such as $offset, or set tombstone to ignore or error", s.Version, columns[i].Field)
	}
	columns[i].NotNull = true // a message without a version has no place in the order
	return i, nil
}

func ordered(oid uint32) bool {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID,
		pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID, pgtype.UUIDOID:
		return true
	}
	return false
}

// compareVersions compares two values of an ordered type in its binary format.
func compareVersions(oid uint32, a, b []byte) int {
	switch oid {
	case pgtype.UUIDOID:
		return bytes.Compare(a, b)
	case pgtype.NumericOID:
		return compareNumerics(a, b)
	default: // two's complement, also dates and times
		return cmp.Or(cmp.Compare(int8(a[0]), int8(b[0])), bytes.Compare(a[1:], b[1:]))
	}
}

// compareNumerics compares the binary form of numeric: count of digits, weight
// of the first, sign, scale, and digits to the base 10000 without zeros at
// either end.
func compareNumerics(a, b []byte) int {
	sign := numericSign(a)
	if other := numericSign(b); sign != other || sign != 1 && sign != -1 {
		return cmp.Compare(sign, other)
	}
	weight := func(n []byte) int16 { return int16(binary.BigEndian.Uint16(n[2:])) }
	return sign * cmp.Or(cmp.Compare(weight(a), weight(b)), bytes.Compare(a[8:], b[8:]))
}

// numericSign orders what is no ordinary number as PostgreSQL does: infinities
// are at the ends, and NaN is greater than all.
func numericSign(n []byte) int {
	switch binary.BigEndian.Uint16(n[4:]) {
	case 0xC000:
		return 3
	case 0xD000:
		return 2
	case 0xF000:
		return -2
	}
	switch {
	case binary.BigEndian.Uint16(n) == 0:
		return 0
	case binary.BigEndian.Uint16(n[4:]) == 0x4000:
		return -1
	default:
		return 1
	}
}
