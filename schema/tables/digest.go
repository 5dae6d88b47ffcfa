package tables

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Name is the name of a table or view. It is always quoted, so that it is taken
// as it is spelled.
type Name struct {
	// Schema may be empty; then the search path of the session decides.
	Schema string `json:"schema"`
	// Table is the table's name.
	Table string `json:"table"`
}

// String returns the name in quotes, ready for SQL.
func (n Name) String() string {
	if n.Schema == "" {
		return pgx.Identifier{n.Table}.Sanitize()
	}
	return pgx.Identifier{n.Schema, n.Table}.Sanitize()
}

// DigestOptions says what of a table counts.
type DigestOptions struct {
	// Exclude names columns that do not count, such as a time of insertion.
	// Defaults to none. A column that is not there is an error.
	Exclude []string
}

// TableDigest is the digest of a table's rows. Digests of equal rows are equal
// (==), on any server, in any session.
type TableDigest struct {
	// Rows is how many rows there are.
	Rows int64
	// Sum is 128 bits, in hexadecimal, over the rows and the columns' names.
	Sum string
}

// String returns both on one line.
func (d TableDigest) String() string { return fmt.Sprintf("%d rows, sum %s", d.Rows, d.Sum) }

// Beginner is what a digest needs of a connection: a *pgx.Conn, a *pgxpool.Pool
// or a pgx.Tx.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Digest reads the table once and returns a digest that depends on its rows, as
// often as each occurs, and on the names of its columns; not on the order of
// rows or columns, nor on who wrote them when. To digest several tables as of
// one moment, pass a transaction that is repeatable read.
//
// A role that row-level security hides rows from gets an error: a digest of some
// of the rows would prove nothing.
func Digest(ctx context.Context, db Beginner, table Name, o DigestOptions) (TableDigest, error) {
	d, err := digest(ctx, db, table, o)
	if err != nil {
		return TableDigest{}, fmt.Errorf("tables: digest of %s: %w", table, err)
	}
	return d, nil
}

func digest(ctx context.Context, db Beginner, table Name, o DigestOptions) (d TableDigest, err error) {
	tx, err := db.Begin(ctx)
	if err != nil {
		return d, err
	}
	// Where the caller passed a transaction this is a savepoint, and its end is
	// what gives the caller's session its settings back.
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	columns, err := columnsOf(ctx, tx, &table, o.Exclude)
	if err != nil {
		return d, err
	}
	if _, err := tx.Exec(ctx, pinSQL); err != nil {
		return d, err
	}
	var high, low string
	if err := tx.QueryRow(ctx, digestSQL(table, columns)).Scan(&d.Rows, &high, &low); err != nil {
		return d, err
	}
	d.Sum, err = foldSums(columns, high, low)
	return d, err
}

// columnsOf returns the columns that count, by name, and completes the table's
// name: once the search path is pinned a bare name finds nothing.
func columnsOf(ctx context.Context, tx pgx.Tx, table *Name, exclude []string) ([]string, error) {
	var columns []string
	err := tx.QueryRow(ctx, `select nspname, relname, array(
			select attname::text from pg_attribute
			where attrelid = c.oid and attnum > 0 and not attisdropped order by attname collate "C")
		from pg_class c join pg_namespace n on n.oid = relnamespace where c.oid = to_regclass($1)`,
		table.String()).Scan(&table.Schema, &table.Table, &columns)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errors.New("no such table")
	}
	if err != nil {
		return nil, err
	}
	for _, name := range exclude {
		if !slices.Contains(columns, name) {
			return nil, fmt.Errorf("no column %q to exclude (columns: %s)", name, strings.Join(columns, ", "))
		}
	}
	return slices.DeleteFunc(columns, func(c string) bool { return slices.Contains(exclude, c) }), nil
}

// pinSQL settles all that the text of a value depends on, for this transaction.
// Of money it is the locale, of regclass the search path. row_security makes
// the server refuse where it would hide rows.
const pinSQL = `select set_config(name, value, true) from (values
	('bytea_output', 'hex'),
	('datestyle', 'ISO, YMD'),
	('extra_float_digits', '1'),
	('intervalstyle', 'postgres'),
	('lc_monetary', 'C'),
	('quote_all_identifiers', 'off'),
	('row_security', 'off'),
	('search_path', 'pg_catalog'),
	('timezone', 'UTC'),
	('xmlbinary', 'base64')) as setting (name, value)`

// digestSQL hashes the text of each row and adds the hashes up in two halves. A
// sum, not an exclusive or, under which any two equal rows would cancel out. The
// text of row() is quoted so that no two rows share one. SHA-256 is there in
// each version and build, md5 is not. "offset 0" keeps the hash from being
// computed again for the second half.
func digestSQL(table Name, columns []string) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = "t." + pgx.Identifier{c}.Sanitize()
	}
	return `select count(*),
	coalesce(sum(('x' || substr(hash, 1, 16))::bit(64)::bigint), 0)::text,
	coalesce(sum(('x' || substr(hash, 17, 16))::bit(64)::bigint), 0)::text
from (
	select encode(sha256(convert_to(row(` + strings.Join(quoted, ", ") + `)::text, 'UTF8')), 'hex') as hash
	from ` + table.String() + ` t offset 0) h`
}

// foldSums adds the hash of the columns' names to the sums, so that values that
// moved to another column differ, and keeps 64 bits of each.
func foldSums(columns []string, sums ...string) (string, error) {
	names := sha256.Sum256([]byte(pgx.Identifier(columns).Sanitize()))
	var b strings.Builder
	for i, text := range sums {
		sum, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return "", fmt.Errorf("sum %q is no number", text)
		}
		sum.Add(sum, new(big.Int).SetUint64(binary.BigEndian.Uint64(names[8*i:])))
		sum.And(sum, new(big.Int).SetUint64(math.MaxUint64))
		fmt.Fprintf(&b, "%016x", sum)
	}
	return b.String(), nil
}
