package tablestest

import (
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// Null is how a null is written where it would else look like an empty text.
const Null = "null"

// Exec runs the statement, or several at once where there are no arguments; the
// test fails at once where one does.
func (db *DB) Exec(sql string, args ...any) {
	db.tb.Helper()
	if len(args) > 0 {
		_, err := db.Pool.Exec(db.ctx(), sql, args...)
		must(db.tb, err)
		return
	}
	conn, err := db.Pool.Acquire(db.ctx())
	must(db.tb, err)
	defer conn.Release()
	_, err = conn.Conn().PgConn().Exec(db.ctx(), sql).ReadAll()
	must(db.tb, err)
}

// Rows returns the rows of the query, each value in PostgreSQL's own text.
func (db *DB) Rows(query string, args ...any) [][]string {
	db.tb.Helper()
	_, rows := db.read(query, args)
	return rows
}

// Value returns the one value of a query of one row and one column.
func (db *DB) Value(query string, args ...any) string {
	db.tb.Helper()
	_, rows := db.read(query, args)
	if len(rows) != 1 || len(rows[0]) != 1 {
		db.tb.Fatalf("%s: want one row of one column, got %v", query, rows)
	}
	return rows[0][0]
}

// Dump returns the rows of the query as a table of aligned columns under their
// names, for scenario tests that compare text. A query of no rows gives the
// names alone.
func (db *DB) Dump(query string, args ...any) string {
	db.tb.Helper()
	names, rows := db.read(query, args)
	all := append([][]string{names}, rows...)
	widths := make([]int, len(names))
	for _, row := range all {
		for i, v := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(v))
		}
	}
	var b strings.Builder
	for _, row := range all {
		b.WriteString(align(row, widths))
		b.WriteByte('\n')
	}
	return b.String()
}

func align(row []string, widths []int) string {
	var b strings.Builder
	for i, v := range row {
		b.WriteString(v)
		b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(v)+2))
	}
	return strings.TrimRight(b.String(), " ")
}

func (db *DB) read(query string, args []any) (names []string, all [][]string) {
	db.tb.Helper()
	// Text results, so that each value looks as in psql, whatever its type.
	args = append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, args...)
	rows, err := db.Pool.Query(db.ctx(), query, args...)
	must(db.tb, err)
	defer rows.Close()
	for _, f := range rows.FieldDescriptions() {
		names = append(names, f.Name)
	}
	for rows.Next() {
		var row []string
		for _, v := range rows.RawValues() {
			row = append(row, text(v))
		}
		all = append(all, row)
	}
	must(db.tb, rows.Err())
	return names, all
}

func text(v []byte) string {
	if v == nil {
		return Null
	}
	return string(v)
}
