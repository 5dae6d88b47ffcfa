package offsets

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sqlCopy leaves out processed_at, which has the transaction's time by default,
// and the result, which is still to come.
const sqlCopy = `copy $processed_message (key, record_offset, payload_sum, partition, handler) from stdin (format binary)`

// copyKeys writes the keys that were not found, in the order of the keys. They
// are fresh if and only if all of them are written: the copy stops at the first
// one that is there, and what it has written goes with the transaction.
func (l *Ledger) copyKeys(ctx context.Context, tx pgx.Tx, f *folded) error {
	places := f.rest()
	if len(places) == 0 {
		return nil
	}
	tag, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(f.encode(places, l.id())), l.sql.copy)
	if err == nil && tag.RowsAffected() != int64(len(places)) {
		err = fmt.Errorf("%d of %d keys were written; the ledger's table must not skip rows by a trigger or a rule", tag.RowsAffected(), len(places))
	}
	if err != nil {
		return l.admitError(f, contested(err))
	}
	for _, place := range places {
		f.fresh[place] = true
	}
	l.written.Add(int64(len(places)))
	return nil
}

// contested tells a unique violation. The copy writes one table, whose only
// unique constraint is its primary key; by the names it could not be told, as
// where the table is distributed each part has a name of its own. The server's
// error is not wrapped: it is no fault of a message.
func contested(err error) error {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok && server.Code == "23505" {
		return fmt.Errorf("%w: %s; roll back and admit the batch as a contested one", ErrKeyContested, strings.TrimSuffix(server.Detail, "."))
	}
	return err
}

// The binary format of COPY, see the PostgreSQL manual, COPY, file formats: a
// signature with two empty fields, then for each row the number of its columns,
// and before each value its length, then a trailer.
const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	copyTrailer = "\xff\xff"
	copyColumns = 5
	copyRow     = 2 + copyColumns*4 + 16 + 8 + 8 + 4 + 2
)

// encode writes the entries at the places as the rows of sqlCopy into one buffer,
// without a value of its own for each cell.
func (f *folded) encode(places []int, handler int16) []byte {
	b := make([]byte, 0, len(copyHeader)+len(places)*copyRow+len(copyTrailer))
	b = append(b, copyHeader...)
	for _, place := range places {
		e := &f.entries[place]
		b = append(b, 0, copyColumns, 0, 0, 0, 16)
		b = append(b, e.Key[:]...)
		b = append(b, 0, 0, 0, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(e.Offset)) //nolint:gosec // the bits are the same
		b = append(b, 0, 0, 0, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(e.PayloadSum)) //nolint:gosec // the bits are the same
		b = append(b, 0, 0, 0, 4)
		b = binary.BigEndian.AppendUint32(b, uint32(e.Partition)) //nolint:gosec // the bits are the same
		b = append(b, 0, 0, 0, 2)
		b = binary.BigEndian.AppendUint16(b, uint16(handler)) //nolint:gosec // the bits are the same
	}
	return append(b, copyTrailer...)
}
