package tables

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// source is a table that is copied. Texts are PostgreSQL's own, as it writes
// them under an empty search path.
type source struct {
	oid         uint32
	name        Name
	kind        string
	partitionOf uint32   // the table it is a partition of, 0: none that is copied
	parents     []uint32 // that it inherits from without being a partition, and are copied
	rows        bool     // copied too
	copied      int64    // rows

	ref         string // the name as it stands in the texts
	key, bound  string // how it is partitioned; which partition it is
	columns     []column
	constraints []part
	indexes     []part
	foreignKeys []foreignKey
	triggers    []trigger
}

// column is what is done to a column of a copy beyond LIKE.
type column struct {
	Name    string
	Default string // its text
	Written bool   // it is not generated
	// Sequence is what the default draws from, empty where it draws from none,
	// SequenceText how it stands in Default, Options how it is created, Owned
	// whether it is the column's own.
	Sequence, SequenceText, Options string
	Owned                           bool
}

// part is a constraint, or an index: the text from its name on.
type part struct {
	Name, Definition string
	Unique           bool
}

type foreignKey struct {
	name, definition string
	to               uint32
	target           string // as it stands in the definition
}

type trigger struct {
	Name, Definition string
	Enabled          string // pg_trigger.tgenabled
}

// copyIn is the name of the copy.
func (s *source) copyIn(schema string) Name { return Name{schema, s.name.Table} }

func (c *copier) readParts(ctx context.Context, s *source) (err error) {
	err = c.tx.QueryRow(ctx, `select oid::regclass::text, coalesce(pg_get_partkeydef(oid), ''), coalesce(pg_get_expr(relpartbound, oid), '')
		from pg_class where oid = $1`, s.oid).Scan(&s.ref, &s.key, &s.bound)
	if err != nil {
		return err
	}
	if s.columns, err = read[column](ctx, c.tx, columnsSQL, s.oid); err != nil {
		return err
	}
	if s.constraints, err = read[part](ctx, c.tx, `select conname, pg_get_constraintdef(oid), true from pg_constraint
		where conrelid = $1 and contype in ('p', 'u', 'x') and conparentid = 0 order by contype, conname`, s.oid); err != nil {
		return err
	}
	if s.indexes, err = read[part](ctx, c.tx, indexesSQL, s.oid); err != nil {
		return err
	}
	if s.triggers, err = read[trigger](ctx, c.tx, `select tgname, pg_get_triggerdef(oid), tgenabled::text from pg_trigger
		where tgrelid = $1 and not tgisinternal and tgparentid = 0 order by tgname`, s.oid); err != nil {
		return err
	}
	if err := c.readForeignKeys(ctx, s); err != nil {
		return err
	}
	return c.readOthers(ctx, s)
}

// columnsSQL finds the sequence that a default draws from by its dependency: a
// name that is only a text in it has none.
const columnsSQL = `select a.attname, case when a.attgenerated = '' then coalesce(pg_get_expr(d.adbin, d.adrelid), '') else '' end, a.attgenerated = '',
		coalesce(s.relname, ''), coalesce(quote_literal(s.seqrelid::regclass::text), ''),
		coalesce(format('as %s increment %s minvalue %s maxvalue %s start %s cache %s', format_type(s.seqtypid, null),
			s.seqincrement, s.seqmin, s.seqmax, s.seqstart, s.seqcache) || case when s.seqcycle then ' cycle' else '' end, ''),
		exists (select from pg_depend o where o.classid = 'pg_class'::regclass and o.objid = s.seqrelid and o.deptype = 'a'
			and o.refobjid = a.attrelid and o.refobjsubid = a.attnum)
	from pg_attribute a
	left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
	left join lateral (
		select c.relname, q.* from pg_depend p join pg_class c on c.oid = p.refobjid join pg_sequence q on q.seqrelid = c.oid
		where p.classid = 'pg_attrdef'::regclass and p.objid = d.oid and p.refclassid = 'pg_class'::regclass limit 1) s on true
	where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped order by a.attnum`

// indexesSQL leaves out the indexes that constraints and parents make.
const indexesSQL = `select c.relname, pg_get_indexdef(c.oid), i.indisunique
	from pg_index i join pg_class c on c.oid = i.indexrelid
	where i.indrelid = $1 and i.indisvalid and not exists (select from pg_constraint where conindid = c.oid and contype in ('p', 'u', 'x'))
		and not exists (select from pg_inherits where inhrelid = c.oid)
	order by c.relname`

func (c *copier) readForeignKeys(ctx context.Context, s *source) error {
	rows, err := c.tx.Query(ctx, `select conname, pg_get_constraintdef(oid), confrelid, confrelid::regclass::text from pg_constraint
		where conrelid = $1 and contype = 'f' and conparentid = 0 order by conname`, s.oid)
	if err != nil {
		return err
	}
	s.foreignKeys, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (k foreignKey, err error) {
		err = row.Scan(&k.name, &k.definition, &k.to, &k.target)
		return k, err
	})
	return err
}

// readOthers says what is never copied.
func (c *copier) readOthers(ctx context.Context, s *source) error {
	rows, err := c.tx.Query(ctx, `select 'rule', rulename from pg_rewrite where ev_class = $1 and rulename <> '_RETURN'
		union all select 'row security policy', polname from pg_policy where polrelid = $1 order by 1, 2`, s.oid)
	if err != nil {
		return err
	}
	var what, name string
	_, err = pgx.ForEachRow(rows, []any{&what, &name}, func() error {
		c.leaveOut(s, fmt.Sprintf("%s %q", what, name), "copies have none")
		return nil
	})
	return err
}

// read collects rows into structures whose fields are in the order of the
// columns.
func read[T any](ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}

// cutIndex returns what of an index's definition comes behind the table's name.
func (s *source) cutIndex(p part) string {
	_, rest, _ := strings.Cut(strings.Replace(p.Definition, " ON ONLY ", " ON ", 1), " ON "+s.ref+" ")
	return rest
}
