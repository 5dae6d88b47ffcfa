package sinks_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// oracle stores a text by the sink and by PostgreSQL's own parser.
type oracle struct {
	db   *tablestest.DB
	sink *sinks.Insert[string]
	typ  string
}

func newOracle(f *testing.F, typ string) *oracle {
	f.Helper()
	db := tablestest.New(f)
	db.Exec(fmt.Sprintf(`create table one (v %s)`, typ))
	sink := &sinks.Insert[string]{Table: "one", Columns: []sinks.Column[string]{sinks.Col("v", func(m schema.Message[string]) any { return m.Body })}}
	prepared(f, db, sinks.Sink[string](sink))
	return &oracle{db, sink, typ}
}

var errDone = errors.New("rolled back")

// check proves that what the sink takes is what PostgreSQL reads, to the digit,
// and that what it refuses is refused or changed by PostgreSQL, or is one of the
// forms that are refused by rule.
func (o *oracle) check(t *testing.T, s string, byRule func(s string) bool) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), o.db.Pool, func(tx pgx.Tx) error {
		err := o.sink.Apply(t.Context(), tx, []schema.Message[string]{{Record: &schema.Record{Value: []byte{}}, Body: s}})
		_, faulty := asFault(err)
		if err != nil && !faulty {
			return err
		}
		if faulty {
			return o.refused(t, tx, s, byRule)
		}
		var same bool
		if err := tx.QueryRow(t.Context(), `select v = $1::text::`+o.typ+` and v::text = ($1::text::`+o.typ+`)::text from one`, s).Scan(&same); err != nil || !same {
			t.Errorf("%q was stored, and PostgreSQL says %v, %v", s, same, err)
		}
		return errDone
	})
	if !errors.Is(err, errDone) {
		t.Fatalf("%q: %v", s, err)
	}
}

// refused asks PostgreSQL about a text that the sink has refused.
func (o *oracle) refused(t *testing.T, tx pgx.Tx, s string, byRule func(s string) bool) error {
	t.Helper()
	var stored string
	err := tx.QueryRow(t.Context(), `select ($1::text::`+o.typ+`)::text`, s).Scan(&stored)
	_, refusedToo := errors.AsType[*pgconn.PgError](err)
	switch {
	case refusedToo || byRule(s) || strings.ContainsRune(s, 0):
		return errDone
	case err != nil:
		return err
	default:
		t.Errorf("%q was refused, and PostgreSQL stores %s", s, stored)
		return errDone
	}
}

// FuzzNumericPostgres proves with PostgreSQL's parser as oracle that a decimal
// arrives with its digits or not at all. By rule the sink refuses NaN and the
// infinities, white space, digits apart (1_000, 0x10, of PostgreSQL 16), and
// what would be rounded.
func FuzzNumericPostgres(f *testing.F) {
	for _, s := range []string{"0", "-0.00", "1.50", "1e3", "-1E-3", ".5", "5.", "+1", "12345678901234567890.12345678901234567890", "1e131071", "1e-16383", "1e131072", "NaN", "infinity", " 1", "1e", "--1", "0x10", "1_000", "1e99999999999", "0e-17000"} {
		f.Add(s)
	}
	o, far := newOracle(f, "numeric"), regexp.MustCompile(`[eE][+-]?[0-9]{5,}`)
	farZero := regexp.MustCompile(`^[+-]?[0.]+[eE][+-]?[0-9]{5,}$`)
	f.Fuzz(func(t *testing.T, s string) {
		// A zero is taken whatever its exponent, and PostgreSQL refuses one out of range.
		if s = strings.ToValidUTF8(s, ""); len(s) > 1000 || farZero.MatchString(s) {
			return
		}
		o.check(t, s, func(s string) bool {
			return strings.ContainsAny(s, " \t\r\n\v\f_xXoObBnNiI") || far.MatchString(s)
		})
	})
}

// FuzzTimestamptzPostgres proves the same of times. By rule the sink takes only
// RFC 3339 with an offset, to the microsecond; PostgreSQL takes much more.
func FuzzTimestamptzPostgres(f *testing.F) {
	for _, s := range []string{"2025-03-05T04:33:45.844195Z", "2025-03-05 04:33:45+00", "2025-03-05T04:33:45-0130", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2024-02-29T00:00:00+14:00", "infinity", "-infinity", "2025-02-30T00:00:00Z", "1999-12-31T23:59:59.5+01", "2025-03-05T04:33:60Z", "2025-03-05t04:33:45z", "2025-03-05T04:33:45+15:59", "2025-03-05T04:33:45.0000000Z", "now"} {
		f.Add(s)
	}
	o := newOracle(f, "timestamptz")
	f.Fuzz(func(t *testing.T, s string) {
		if s = strings.ToValidUTF8(s, ""); len(s) > 100 {
			return
		}
		o.check(t, s, func(string) bool { return true })
	})
}

// FuzzDatePostgres proves the same of dates.
func FuzzDatePostgres(f *testing.F) {
	for _, s := range []string{"2025-03-05", "0001-01-01", "9999-12-31", "2024-02-29", "2023-02-29", "infinity", "2025-3-5", "20250305", "epoch"} {
		f.Add(s)
	}
	o := newOracle(f, "date")
	f.Fuzz(func(t *testing.T, s string) {
		if s = strings.ToValidUTF8(s, ""); len(s) > 100 {
			return
		}
		o.check(t, s, func(string) bool { return true })
	})
}
