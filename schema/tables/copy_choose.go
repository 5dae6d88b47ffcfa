package tables

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// choose finds the tables to be copied, while the caller's search path holds.
func (c *copier) choose(ctx context.Context) error {
	if err := c.tx.QueryRow(ctx, "select current_schemas(false)::text[]").Scan(&c.done.SearchPath); err != nil {
		return err
	}
	for _, name := range c.opts.Rows {
		if err := c.chooseNamed(ctx, name, true); err != nil {
			return err
		}
	}
	for _, name := range c.opts.Tables {
		if err := c.chooseNamed(ctx, name, false); err != nil {
			return err
		}
	}
	if len(c.opts.Tables) > 0 {
		return nil
	}
	oids, err := c.allTables(ctx)
	if err != nil {
		return err
	}
	for _, oid := range oids {
		if err := c.add(ctx, oid, false); err != nil {
			return err
		}
	}
	return nil
}

// errNoTable is what a name that leads to no table is answered with.
var errNoTable = errors.New("no such table")

func (c *copier) chooseNamed(ctx context.Context, name Name, rows bool) error {
	var oid uint32
	var kind string
	err := c.tx.QueryRow(ctx, "select oid, relkind::text from pg_class where oid = to_regclass($1)", name.String()).Scan(&oid, &kind)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%s: %w", name, errNoTable)
	case err != nil:
		return err
	case kind != ordinary && kind != partitioned:
		return fmt.Errorf("%s is neither an ordinary nor a partitioned table, and cannot be copied", name)
	}
	return c.add(ctx, oid, rows)
}

// The kinds of pg_class that are copied.
const (
	ordinary    = "r"
	partitioned = "p"
)

// allTables lists the tables of the schemas, parents before their children.
func (c *copier) allTables(ctx context.Context) ([]uint32, error) {
	schemas := c.opts.Schemas
	if len(schemas) == 0 {
		schemas = c.done.SearchPath
	}
	rows, err := c.tx.Query(ctx, `select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = any ($1) and n.nspname <> $2 and c.relkind in ('r', 'p') and c.relpersistence <> 't'
			and coalesce(obj_description(n.oid, 'pg_namespace'), '') not like $3
			and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
			and not (c.relname = any ($4) and exists (
				select from pg_class v where v.relnamespace = c.relnamespace and v.relname = $5))
		order by (select count(*) from pg_inherits where inhrelid = c.oid), c.oid`,
		schemas, c.into, scratchMark+"%", LedgerTables(), versionTable)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uint32])
}

// add takes a table and its partitions, each once.
func (c *copier) add(ctx context.Context, oid uint32, rows bool) error {
	if c.source(oid) != nil {
		return nil
	}
	s := &source{oid: oid, rows: rows}
	err := c.tx.QueryRow(ctx, `select n.nspname, c.relname, c.relkind::text,
			coalesce((select inhparent from pg_inherits where inhrelid = c.oid and c.relispartition), 0),
			array(select inhparent from pg_inherits where inhrelid = c.oid and not c.relispartition order by inhseqno)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = $1`, oid).
		Scan(&s.name.Schema, &s.name.Table, &s.kind, &s.partitionOf, &s.parents)
	if err != nil {
		return fmt.Errorf("look at the table with oid %d: %w", oid, err)
	}
	if s.partitionOf != 0 && c.source(s.partitionOf) == nil {
		s.partitionOf = 0 // wanted for itself, it becomes a table of its own
	}
	s.parents = slices.DeleteFunc(s.parents, func(p uint32) bool { return c.source(p) == nil })
	c.sources, c.unread = append(c.sources, s), append(c.unread, s)
	if s.kind != partitioned {
		return nil
	}
	children, err := c.tx.Query(ctx, "select inhrelid from pg_inherits where inhparent = $1 order by inhrelid", oid)
	if err != nil {
		return err
	}
	oids, err := pgx.CollectRows(children, pgx.RowTo[uint32])
	if err != nil {
		return err
	}
	for _, child := range oids {
		if err := c.add(ctx, child, rows); err != nil {
			return err
		}
	}
	return nil
}

// follow adds the tables that the foreign keys of s refer to, with their rows,
// as far as they are small.
func (c *copier) follow(ctx context.Context, s *source) error {
	keys := s.foreignKeys
	s.foreignKeys = nil
	for _, k := range keys {
		if c.source(k.to) == nil {
			small, err := c.isSmall(ctx, k.target)
			if err != nil {
				return err
			}
			if !small {
				c.leaveOut(s, fmt.Sprintf("foreign key %q", k.name),
					fmt.Sprintf("%s is not among the tables to be copied, and has more than %d rows", k.target, c.opts.RowLimit))
				continue
			}
			if err := c.add(ctx, k.to, true); err != nil {
				return err
			}
		}
		s.foreignKeys = append(s.foreignKeys, k)
	}
	return nil
}

func (c *copier) isSmall(ctx context.Context, table string) (small bool, err error) {
	err = c.tx.QueryRow(ctx, "select count(*) <= $1 from (select from "+table+" limit $1 + 1) r", c.opts.RowLimit).Scan(&small)
	return small, err
}
