package tables

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
)

// clockFunctions are PostgreSQL's functions of the clock, with their volatility.
// The words without brackets (current_timestamp, current_date) are no functions;
// ShiftDefaults replaces them where it can.
var clockFunctions = map[string]string{
	"now": "stable", "transaction_timestamp": "stable", "statement_timestamp": "stable", "clock_timestamp": "volatile",
}

// ShiftClock makes functions of the clock in the schema that are the given time
// ahead. With the schema before pg_catalog in the search path, now() and its like
// mean these: in statements, in triggers, and in the defaults of tables that are
// copied into the schema afterwards.
func ShiftClock(ctx context.Context, conn *pgx.Conn, schema string, by time.Duration) error {
	for name, volatility := range clockFunctions {
		// A literal, since a function's body takes no parameters.
		sql := fmt.Sprintf("create function %s() returns timestamptz language sql %s as 'select pg_catalog.%s() + pg_catalog.make_interval(secs => %d)'",
			pgx.Identifier{schema, name}.Sanitize(), volatility, name, int64(by/time.Second))
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("tables: shift the clock of schema %q: %w", schema, err)
		}
	}
	return nil
}

// clockWords are the words of the clock and what stands for them.
var clockWords = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`\bCURRENT_TIMESTAMP(\(\d\))?`), "now()"},
	{regexp.MustCompile(`\bLOCALTIMESTAMP(\(\d\))?`), "(now())::timestamp"},
	{regexp.MustCompile(`\bCURRENT_DATE\b`), "(now())::date"},
	{regexp.MustCompile(`\bCURRENT_TIME(\(\d\))?`), "(now())::timetz"},
	{regexp.MustCompile(`\bLOCALTIME(\(\d\))?`), "(now())::time"},
}

// ShiftDefaults gives the defaults of the tables in the schema that name the
// clock by a word, such as current_date, the functions of ShiftClock instead.
func ShiftDefaults(ctx context.Context, conn *pgx.Conn, schema string) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select format('alter table %I.%I alter column %I set default ', n.nspname, c.relname, a.attname), pg_get_expr(d.adbin, d.adrelid)
			from pg_attrdef d join pg_class c on c.oid = d.adrelid join pg_namespace n on n.oid = c.relnamespace
				join pg_attribute a on a.attrelid = c.oid and a.attnum = d.adnum
			where n.nspname = $1 and a.attgenerated = ''
				and pg_get_expr(d.adbin, d.adrelid) ~ '\m(CURRENT_(TIMESTAMP|DATE|TIME)|LOCALTIME(STAMP)?)\M'`, schema)
		if err != nil {
			return err
		}
		type column struct{ Alter, Default string }
		columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "select set_config('search_path', $1, true)", pgx.Identifier{schema}.Sanitize()+", pg_catalog"); err != nil {
			return err
		}
		for _, c := range columns {
			for _, w := range clockWords {
				c.Default = w.pattern.ReplaceAllString(c.Default, w.text)
			}
			if _, err := tx.Exec(ctx, c.Alter+c.Default); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("tables: shift the defaults of schema %q: %w", schema, err)
	}
	return nil
}

// ShiftSequences sets the sequences of the schema a million ahead, or half of
// their range where that is less, so that numbers drawn from them are others.
func ShiftSequences(ctx context.Context, conn *pgx.Conn, schema string) error {
	_, err := conn.Exec(ctx, `select setval(c.oid::regclass,
			(case when s.seqincrement > 0 then least(s.seqstart + 1000000::numeric, div(s.seqstart::numeric + s.seqmax, 2))
				else greatest(s.seqstart - 1000000::numeric, div(s.seqstart::numeric + s.seqmin, 2)) end)::bigint)
		from pg_sequence s join pg_class c on c.oid = s.seqrelid where c.relnamespace = $1::text::regnamespace`, pgx.Identifier{schema}.Sanitize())
	if err != nil {
		return fmt.Errorf("tables: shift the sequences of schema %q: %w", schema, err)
	}
	return nil
}

// CopySequences makes sequences in the scratch schema into for those of the
// schemas that belong to no table, so that nextval('name') draws from the copy.
// They start anew.
func CopySequences(ctx context.Context, conn *pgx.Conn, into string, schemas []string) error {
	statements, err := sequenceStatements(ctx, conn, into, schemas)
	for _, sql := range statements {
		if _, err = conn.Exec(ctx, sql); err != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("tables: copy the sequences into schema %q: %w", into, err)
	}
	return nil
}

// sequenceStatements reads the catalogs and not the view of all sequences, which
// fails when one of a stranger's is dropped meanwhile. Where two schemas have a
// sequence of one name, the first one's is found, and copied.
func sequenceStatements(ctx context.Context, conn *pgx.Conn, into string, schemas []string) ([]string, error) {
	rows, err := conn.Query(ctx, `select format('create sequence if not exists %I.%I as %s increment %s minvalue %s maxvalue %s start %s %s',
			$1::text, c.relname, format_type(s.seqtypid, null), s.seqincrement, s.seqmin, s.seqmax, s.seqstart, case when s.seqcycle then 'cycle' else '' end)
		from unnest($2::text[]) with ordinality as path (name, place)
			join pg_namespace n on n.nspname = path.name join pg_class c on c.relnamespace = n.oid join pg_sequence s on s.seqrelid = c.oid
		where not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
			and d.refclassid = 'pg_class'::regclass and d.refobjsubid > 0 and d.deptype in ('a', 'i'))
		order by path.place, c.relname`, into, schemas)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
