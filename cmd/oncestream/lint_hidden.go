package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/sinks"
)

// hiddenInput returns the first function in an SQL text that answers something
// else the next time, "" where none is known.
func hiddenInput(sql string) string {
	pattern := regexp.MustCompile(`(?i)\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|random|gen_random_uuid|uuid_generate_v[14]|nextval|currval|lastval)\s*\(|` +
		`\b(current_(?:date|time|timestamp)|localtime|localtimestamp)\b`)
	found := strings.ToLower(pattern.FindString(sql))
	if name, call := strings.CutSuffix(found, "("); call {
		return strings.TrimSpace(name) + "()"
	}
	return found
}

// hiddenInputs are what a table adds to what is written to it.
type hiddenInputs struct {
	defaults []columnDefault
	triggers []string
}

// columnDefault is the default of a column, empty for an identity.
type columnDefault struct{ Column, Expression string }

func readHiddenInputs(ctx context.Context, conn *pgx.Conn, t *sinks.Table) (hiddenInputs, error) {
	var in hiddenInputs
	name := pgx.Identifier{t.Schema, t.Name}.Sanitize()
	rows, err := conn.Query(ctx, `
		select a.attname::text, coalesce(pg_get_expr(d.adbin, d.adrelid), '')
		from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
		where a.attrelid = $1::text::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
			and (a.attidentity <> '' or d.adbin is not null)
		order by a.attnum`, name)
	if err == nil {
		in.defaults, err = pgx.CollectRows(rows, pgx.RowToStructByPos[columnDefault])
	}
	if err != nil {
		return in, fmt.Errorf("read the defaults of %s: %w", t.Name, err)
	}
	rows, err = conn.Query(ctx, `
		select tgname::text from pg_trigger
		where tgrelid = $1::text::regclass and not tgisinternal and tgenabled <> 'D'
		order by tgname`, name)
	if err == nil {
		in.triggers, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		return in, fmt.Errorf("read the triggers of %s: %w", t.Name, err)
	}
	return in, nil
}

// texts says what a sink that writes the columns does not decide itself. Rows
// that are deleted get no defaults.
func (in hiddenInputs) texts(written map[string]string, kind string) []string {
	var all []string
	for _, d := range in.defaults {
		if _, ok := written[d.Column]; ok || kind == "delete" {
			continue
		}
		switch found := hiddenInput(d.Expression); {
		case d.Expression == "":
			all = append(all, fmt.Sprintf("column %s is not written and takes the next number of a sequence: it differs when the row is written again", d.Column))
		case found != "":
			all = append(all, fmt.Sprintf("column %s is not written and has the default %s: it differs when the row is written again", d.Column, found))
		}
	}
	for _, t := range in.triggers {
		all = append(all, fmt.Sprintf("trigger %s runs with each row: what it does is not to be seen here, and happens once only if it stays within the transaction", t))
	}
	return all
}
