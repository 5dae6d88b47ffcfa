package tables

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Keys are the columns by which the rows of a table can be told apart, and those
// whose values another run would not repeat.
type Keys struct {
	// Primary is the primary key, empty where there is none.
	Primary []string
	// Unique are the other unique keys of plain columns that may not be null, the
	// shortest first.
	Unique [][]string
	// Volatile are the columns that the database fills in by itself, with another
	// value each time, where an insert leaves them out.
	Volatile []VolatileColumn
}

// VolatileColumn is a column whose default is no constant.
type VolatileColumn struct {
	Name string `json:"name"`
	// Default is its text, such as now(), or "identity".
	Default string `json:"default"`
}

// KeysOf reads the keys of a table. A default counts as volatile when it calls a
// function that is not immutable, or names the clock or the user.
func KeysOf(ctx context.Context, db Querier, table Name) (Keys, error) {
	var k Keys
	err := k.read(ctx, db, table)
	if err != nil {
		return Keys{}, fmt.Errorf("tables: read the keys of %s: %w", table, err)
	}
	return k, nil
}

func (k *Keys) read(ctx context.Context, db Querier, table Name) error {
	rows, err := db.Query(ctx, `select i.indisprimary, array(select a.attname::text from unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
			join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum where k.place <= i.indnkeyatts order by k.place) as columns
		from pg_index i
		where i.indrelid = to_regclass($1) and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
			and not exists (select from pg_attribute a where a.attrelid = i.indrelid and not a.attnotnull
				and a.attnum = any ((i.indkey::int2[])[0:i.indnkeyatts - 1]))
		order by i.indnkeyatts, columns`, table.String())
	if err != nil {
		return err
	}
	var primary bool
	var columns []string
	if _, err := pgx.ForEachRow(rows, []any{&primary, &columns}, func() error {
		if primary {
			k.Primary = columns
		} else {
			k.Unique = append(k.Unique, columns)
		}
		columns = nil
		return nil
	}); err != nil {
		return err
	}
	rows, err = db.Query(ctx, `select a.attname::text, case when a.attidentity <> '' then 'identity' else d.text end
		from pg_attribute a left join lateral (
			select pg_get_expr(adbin, adrelid) as text from pg_attrdef where adrelid = a.attrelid and adnum = a.attnum) d on true
		where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and (a.attidentity <> ''
			or d.text ~ '\m(CURRENT_[A-Z]+|LOCALTIME(STAMP)?|SESSION_USER)\M'
			or exists (select from regexp_matches(d.text, '([[:alnum:]_]+)"?\(', 'g') as call (name)
				join pg_proc p on p.proname = call.name[1] and p.provolatile <> 'i'))
		order by a.attnum`, table.String())
	if err != nil {
		return err
	}
	k.Volatile, err = pgx.CollectRows(rows, pgx.RowToStructByPos[VolatileColumn])
	return err
}
