package sinks

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncestream/oncestream/schema"
)

// A row that is only appended is written by COPY in its binary format rather
// than by an insert from arrays: no row passes through the executor, and a page
// is filled by many rows at once. Measured by BenchmarkInsertWays, rows of a
// payment with a random uuid as primary key on a busy machine of two cores,
// PostgreSQL 15: in batches of 5,000 COPY takes 0.79 of the server's CPU and 0.78
// of the time, in batches of 200 0.90 and 0.86; of 10 it takes 0.96 and 1.25.
//
// What COPY does not do, and the insert from arrays does: it does not write to
// views, passes by rules, is refused where a policy of row level security binds
// the role (0A000), casts nothing, and does not check the domain of a column that
// is left out. A table or a column of such kind keeps the insert; Prepare decides
// that.

// copyFewest is the least number of messages for which COPY is used: below it,
// the longer exchange and the goroutine that sends eat up what it saves.
const copyFewest = 32

// The binary format of COPY (PostgreSQL manual, COPY, file formats): a signature
// and two empty fields; of each row the number of its columns, then the cells as
// in an array; a trailer.
const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	copyTrailer = "\xff\xff"
)

// copying is what stands against COPY into a table.
type copying struct {
	// refused says that the table's kind, its rules or its policies do.
	refused bool
	// domains are the columns of a domain that have no default.
	domains []string
}

func copyingOf(ctx context.Context, conn *pgx.Conn, table uint32) (c copying, err error) {
	err = conn.QueryRow(ctx, `
		select c.relkind not in ('r', 'p') or c.relhasrules or row_security_active(c.oid), array(
			select a.attname::text
			from pg_attribute a join pg_type t on t.oid = a.atttypid
			where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
				and t.typtype = 'd' and t.typdefault is null and not a.atthasdef and a.attidentity = '')
		from pg_class c
		where c.oid = $1`, table).Scan(&c.refused, &c.domains)
	return c, err
}

// copyable reports whether rows of the columns can be written by COPY.
func copyable(t *Table, targets []target) bool {
	if t.copying.refused || len(targets) == 0 {
		return false
	}
	written := make(map[string]bool, len(targets))
	for i := range targets {
		if !targets[i].received() {
			return false
		}
		written[targets[i].Name] = true
	}
	for _, name := range t.copying.domains {
		if !written[name] {
			return false
		}
	}
	return true
}

// received reports whether the column's type, or the base of its domain, reads
// in its binary format what the target's encoder writes. An enum reads its label.
func (t *target) received() bool {
	switch t.BaseOID {
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID:
		return true
	default:
		return t.elem != pgtype.TextOID || t.Enum
	}
}

// copySQL has no parameters: COPY takes none.
func copySQL(t *Table, targets []*target) string {
	names := make([]string, len(targets))
	for i, target := range targets {
		names[i] = quote(target.Name)
	}
	return fmt.Sprintf("copy %s (%s) from stdin (format binary)", t.ref(), strings.Join(names, ", "))
}

// copyRow appends a row to the stream of its shape.
func copyRow(stream []byte, columns int, row cells) []byte {
	stream = binary.BigEndian.AppendUint16(stream, uint16(columns)) //nolint:gosec // a table has 1,600 at most
	for _, cell := range row {
		stream = append(stream, cell...)
	}
	return stream
}

// copyRows writes the rows of a shape, and returns how many were written: fewer
// than there are where a trigger has kept some out. The connection is told of
// COPY by its own method and not by pgx's, which takes a Go value for each cell;
// a tracer is told as pgx would tell it.
func copyRows(ctx context.Context, tx pgx.Tx, t *Table, sh *shape) (int64, error) {
	conn := tx.Conn()
	if conn.PgConn().TxStatus() == 'I' {
		return 0, pgx.ErrTxClosed // the rows would be written for good
	}
	tracer, traced := conn.Config().Tracer.(pgx.CopyFromTracer)
	if traced {
		ctx = tracer.TraceCopyFromStart(ctx, conn, pgx.TraceCopyFromStartData{TableName: t.identifier(), ColumnNames: columnsOfTargets(sh.targets)})
	}
	sh.stream = append(sh.stream, copyTrailer...)
	tag, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(sh.stream), copySQL(t, sh.targets))
	if traced {
		tracer.TraceCopyFromEnd(ctx, conn, pgx.TraceCopyFromEndData{CommandTag: tag, Err: err})
	}
	return tag.RowsAffected(), err
}

func columnsOfTargets(targets []*target) []string {
	names := make([]string, len(targets))
	for i, target := range targets {
		names[i] = target.Name
	}
	return names
}

// copyFault makes a fault of its message of an error that names the line, which
// is the row: one of a value, a check, a null or a unique index. A foreign key
// is checked behind all rows and names none. An error of another kind names a
// line as well, and is of the batch: a trigger that lacks its table, a timeout.
func copyFault(err error, t *Table, sh *shape, record func(place int) *schema.Record) error {
	server, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || reasonOf(server.Code) == "" {
		return err
	}
	line, ok := copyLine(server.Where, t.Name)
	if !ok || line < 1 || line > len(sh.places) {
		return err
	}
	return &schema.Fault{Reason: reasonOf(server.Code), Record: record(sh.places[line-1]), Column: server.ColumnName, Err: err}
}

// copyLine reads the line out of the context of an error, "COPY payment, line 17,
// column amount", behind which a trigger's may stand. A server that speaks
// another language than English tells no line that is understood, and the
// message is searched for.
func copyLine(where, table string) (line int, ok bool) {
	for text := range strings.Lines(where) {
		rest, found := strings.CutPrefix(strings.TrimSpace(text), "COPY "+table+", line ")
		if !found {
			continue
		}
		digits, _, _ := strings.Cut(rest, ",")
		digits, _, _ = strings.Cut(digits, ":")
		line, err := strconv.Atoi(digits)
		return line, err == nil
	}
	return 0, false
}
