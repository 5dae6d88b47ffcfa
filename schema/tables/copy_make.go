package tables

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

func (c *copier) copyOf(s *source) string { return s.copyIn(c.into).String() }

func (c *copier) sequence(col *column) string { return Name{c.into, col.Sequence}.String() }

// sequencesOf makes the sequences that the defaults of s draw from. One that
// several defaults share is made by the first of them.
func (c *copier) sequencesOf(s *source) []string {
	var statements []string
	for i := range s.columns {
		if col := &s.columns[i]; col.Sequence != "" {
			statements = append(statements, fmt.Sprintf("create sequence if not exists %s %s", c.sequence(col), col.Options))
		}
	}
	return statements
}

// tableOf makes the table. Its indexes and defaults follow: LIKE would give the
// indexes other names and bind the defaults to the sequences of the original. A
// partition has its identity columns from its parent.
func (c *copier) tableOf(s *source) []string {
	like := "including all excluding indexes excluding defaults excluding statistics excluding comments"
	if s.partitionOf != 0 {
		like += " excluding identity"
	}
	statement := fmt.Sprintf("create table %s (like %s %s)", c.copyOf(s), s.ref, like)
	if len(s.parents) > 0 {
		parents := make([]string, len(s.parents))
		for i, oid := range s.parents {
			parents[i] = c.copyOf(c.source(oid))
		}
		statement += " inherits (" + strings.Join(parents, ", ") + ")"
	}
	if s.key != "" {
		statement += " partition by " + s.key
	}
	return []string{statement}
}

func (c *copier) defaultsOf(s *source) []string {
	var statements []string
	for i := range s.columns {
		col := &s.columns[i]
		if col.Default == "" {
			continue
		}
		text := col.Default
		if col.Sequence != "" {
			text = strings.ReplaceAll(text, col.SequenceText, quotedText(c.sequence(col)))
		}
		statements = append(statements, fmt.Sprintf("alter table only %s alter column %s set default %s", c.copyOf(s), quoted(col.Name), text))
		if col.Owned {
			statements = append(statements, fmt.Sprintf("alter sequence %s owned by %s.%s", c.sequence(col), c.copyOf(s), quoted(col.Name)))
		}
	}
	return statements
}

func (c *copier) attachmentOf(s *source) []string {
	if s.partitionOf == 0 {
		return nil
	}
	return []string{fmt.Sprintf("alter table %s attach partition %s %s", c.copyOf(c.source(s.partitionOf)), c.copyOf(s), s.bound)}
}

// indexesOf makes constraints that are indexes, and other indexes. Those of a
// partitioned table make those of its partitions.
func (c *copier) indexesOf(s *source) []string {
	var statements []string
	for _, p := range s.constraints {
		statements = append(statements, fmt.Sprintf("alter table %s add constraint %s %s", c.copyOf(s), quoted(p.Name), p.Definition))
	}
	for _, p := range s.indexes {
		unique := ""
		if p.Unique {
			unique = "unique "
		}
		statements = append(statements, fmt.Sprintf("create %sindex %s on %s %s", unique, quoted(p.Name), c.copyOf(s), s.cutIndex(p)))
	}
	return statements
}

func (c *copier) foreignKeysOf(s *source) []string {
	var statements []string
	for _, k := range s.foreignKeys {
		definition := strings.Replace(k.definition, " REFERENCES "+k.target+"(", " REFERENCES "+c.copyOf(c.source(k.to))+"(", 1)
		statements = append(statements, fmt.Sprintf("alter table %s add constraint %s %s", c.copyOf(s), quoted(k.name), definition))
	}
	return statements
}

// enabling says how a trigger comes to be as pg_trigger.tgenabled says; one that
// is just made is "O".
func enabling(state string) string {
	switch state {
	case "D":
		return "disable"
	case "R":
		return "enable replica"
	case "A":
		return "enable always"
	}
	return ""
}

func (c *copier) triggersOf(s *source) []string {
	var statements []string
	for _, t := range s.triggers {
		statements = append(statements, strings.Replace(t.Definition, " ON "+s.ref+" ", " ON "+c.copyOf(s)+" ", 1))
		if how := enabling(t.Enabled); how != "" {
			statements = append(statements, fmt.Sprintf("alter table %s %s trigger %s", c.copyOf(s), how, quoted(t.Name)))
		}
	}
	return statements
}

// copyRows fills a copy. A partition is filled by way of the table it belongs to.
func (c *copier) copyRows(ctx context.Context, s *source) error {
	if !s.rows || s.partitionOf != 0 {
		return nil
	}
	var names []string
	for _, col := range s.columns {
		if col.Written {
			names = append(names, quoted(col.Name))
		}
	}
	list := strings.Join(names, ", ")
	only := "only "
	if s.kind == partitioned {
		only = ""
	}
	tag, err := c.tx.Exec(ctx, fmt.Sprintf("insert into %s (%s) overriding system value select %s from %s%s", c.copyOf(s), list, list, only, s.ref))
	if err != nil {
		return err
	}
	s.copied = tag.RowsAffected()
	return c.moveSequences(ctx, s)
}

// moveSequences sets the sequences of a copy behind the numbers in its rows.
func (c *copier) moveSequences(ctx context.Context, s *source) error {
	owners, err := read[struct{ Column, Sequence string }](ctx, c.tx, `select a.attname, pg_get_serial_sequence($1::text, a.attname)
		from pg_attribute a where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped
			and pg_get_serial_sequence($1::text, a.attname) is not null`, c.copyOf(s))
	if err != nil {
		return err
	}
	for _, o := range owners {
		_, err := c.tx.Exec(ctx, fmt.Sprintf("select setval($1::text::regclass, max(%s)) from %s having max(%[1]s) is not null", quoted(o.Column), c.copyOf(s)), o.Sequence)
		if err != nil {
			return err
		}
	}
	return nil
}

// quotedText quotes a text for SQL, where a parameter cannot stand.
func quotedText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
