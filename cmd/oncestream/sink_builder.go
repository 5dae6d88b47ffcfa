package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/sinks"
)

// refreshEvery is the time until a change of a table that no statement meets,
// such as a new column that must not be null, is seen.
const refreshEvery = 30 * time.Second

// sinkBuilder makes a sink of its configuration and its table.
type sinkBuilder struct {
	config *config
	sink   *sinkConfig
	table  *sinks.Table
	made   preparedSink
	paths  []string // of the fields that it reads
	// written are the columns of the table that it writes, by the source.
	written map[string]string
	faults  faults
}

// preparedSink is what all sinks of the pipeline file are.
type preparedSink interface {
	sinks.Sink[schema.Row]
	sinks.Preparer
}

// build makes the sink. What is wrong with the configuration is in b.faults; an
// error is the database's.
func (b *sinkBuilder) build(ctx context.Context, conn *pgx.Conn) error {
	if b.sink.table != "" {
		table, err := sinks.Describe(ctx, conn, b.sink.table)
		if err != nil {
			return b.blame(b.sink.path+".table", conn, err)
		}
		b.table = table
	}
	b.made = sinks.Refresh[schema.Row](b.filtered(b.make()), refreshEvery)
	if len(b.faults) > 0 {
		return nil
	}
	at := b.sink.path
	if b.sink.kind == "sql" {
		at += ".statement"
	}
	return b.blame(at, conn, b.made.Prepare(ctx, conn))
}

// filtered lets the sink see the messages of its where only.
func (b *sinkBuilder) filtered(sink preparedSink) preparedSink {
	if b.sink.where == "" {
		return sink
	}
	p, err := sinks.Condition(b.sink.where, nil)
	if err != nil {
		b.fail("where", "%s", strings.TrimPrefix(err.Error(), "where: "))
		return sink
	}
	b.paths = append(b.paths, p.Uses...)
	return sinks.Where[schema.Row](sink, p)
}

// blame turns errors of the configuration into faults and returns the others.
func (b *sinkBuilder) blame(path string, conn *pgx.Conn, err error) error {
	if err == nil {
		return nil
	}
	// What the server says of a statement of one's own is about the file.
	if isServers(err) && b.sink.kind != "sql" || conn.IsClosed() {
		return err
	}
	prefix := regexp.MustCompile(`^sinks: ` + b.sink.kind + `( [^:]*)?: `)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		b.faults = append(b.faults, b.config.at(path, "%s", prefix.ReplaceAllString(line, "")))
	}
	return nil
}

// isServers reports whether the error is what the server has said.
func isServers(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok
}

func (b *sinkBuilder) make() preparedSink {
	s := b.sink
	switch s.kind {
	case "insert":
		insert := &sinks.Insert[schema.Row]{
			Table: s.table, Columns: b.columns("columns", b.orAll(s.columns)),
			OnConflict: sinks.ConflictRule(s.onConflict), KeyFields: b.config.keySources(),
		}
		if b.isGuard() {
			insert.OnConflict, insert.LookUp = sinks.ConflictDuplicate, true
		}
		return insert
	case "upsert":
		return &sinks.Upsert[schema.Row]{
			Table: s.table, Key: names(s.key), Columns: b.columns("columns", b.withKey()),
			Mode: sinks.Mode(s.mode), Tombstone: sinks.TombstoneRule(s.tombstone), Version: s.version,
		}
	case "delete":
		return &sinks.Delete[schema.Row]{Table: s.table, Key: b.columns("key", s.key)}
	case "ledger":
		return b.makeLedger(&s.ledger)
	case "sql":
		return &sinks.SQL[schema.Row]{Statement: s.sql.statement, Rows: sinks.Rows(s.sql.rows), Params: b.params()}
	default:
		return &sinks.Sum[schema.Row]{Table: s.table, Key: b.columns("key", s.key), Add: b.columns("add", s.add)}
	}
}

// isGuard reports whether the sink's table is the only guard.
func (b *sinkBuilder) isGuard() bool { return b.config.byConstraint() && b.sink == &b.config.sinks[0] }

func (b *sinkBuilder) makeLedger(l *ledgerConfig) preparedSink {
	return &sinks.Ledger[schema.Row]{
		Accounts: l.accounts, Entries: l.entries, NonNegative: l.nonNegative, Overdraft: l.overdraft,
		From: b.column("from", l.from), To: b.column("to", l.to), Amount: b.column("amount", l.amount), Currency: b.column("currency", l.currency),
	}
}

func (b *sinkBuilder) params() []sinks.Param[schema.Row] {
	params := make([]sinks.Param[schema.Row], len(b.sink.sql.params))
	for i, c := range b.sink.sql.params {
		params[i] = sinks.Param[schema.Row]{Column: b.column("params."+c.name, c), Type: c.typ}
	}
	return params
}

// columns checks the names against the table and makes the columns.
func (b *sinkBuilder) columns(name string, list columns) []sinks.Column[schema.Row] {
	var out []sinks.Column[schema.Row]
	for _, c := range list {
		at := b.listOf(name, c.name)
		b.checkColumn(at, c.name)
		b.note(c)
		out = append(out, b.column(at+"."+c.name, c))
	}
	return out
}

func (b *sinkBuilder) note(c column) {
	if b.written == nil {
		b.written = map[string]string{}
	}
	b.written[c.name] = c.field
}

// listOf returns the list in which the file names the column: those of a key are
// written too.
func (b *sinkBuilder) listOf(name, of string) string {
	if name == "columns" && slices.ContainsFunc(b.sink.key, func(k column) bool { return k.name == of }) {
		return "key"
	}
	return name
}

// column makes a column of its source and notes the fields to read.
func (b *sinkBuilder) column(at string, c column) sinks.Column[schema.Row] {
	var out sinks.Column[schema.Row]
	switch {
	case c.value != nil:
		out = sinks.Constant[schema.Row](c.name, *c.value)
	case c.expr != "":
		var err error
		if out, err = sinks.Computed(c.name, c.expr, nil); err != nil {
			b.fail(at+".expr", "%s", strings.TrimPrefix(err.Error(), fmt.Sprintf("column %q: ", c.name)))
		}
	default:
		out = sinks.Field(c.name, c.field)
	}
	b.paths = append(b.paths, sinks.Paths(out)...)
	converted, err := out.As(c.as...)
	if err != nil {
		b.fail(at+".as", "%s", strings.TrimPrefix(err.Error(), fmt.Sprintf("column %q: ", c.name)))
	}
	return converted
}

func (b *sinkBuilder) fail(at, format string, args ...any) {
	b.faults = append(b.faults, b.config.at(b.sink.path+"."+at, format, args...))
}

func (b *sinkBuilder) checkColumn(list, name string) {
	c, ok := b.table.Column(name)
	switch {
	case !ok:
		var right []string
		for _, c := range b.table.Columns {
			right = append(right, c.Name)
		}
		b.fail(list+"."+name, "no such column in table %s%s", b.table.Name, didYouMean(name, right))
	case c.Generated && b.sink.kind != "delete":
		b.fail(list+"."+name, "the column is generated always and cannot be written")
	}
}

// orAll returns the columns, or where there are none all that can be written,
// each from the field of its name.
func (b *sinkBuilder) orAll(list columns) columns {
	if list != nil {
		return list
	}
	for _, c := range b.table.Columns {
		if !c.Generated {
			list = append(list, sameName(c.Name))
		}
	}
	return list
}

// withKey returns the columns of an upsert together with those of its key.
func (b *sinkBuilder) withKey() columns {
	list := slices.Clone(b.sink.key)
	for _, c := range b.orAll(b.sink.columns) {
		i := slices.IndexFunc(b.sink.key, func(k column) bool { return k.name == c.name })
		switch {
		case i < 0:
			list = append(list, c)
		case b.sink.columns != nil:
			list[i] = c // "key: [id]" names the column, "columns" says its field
		}
	}
	return list
}

func names(list columns) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = c.name
	}
	return out
}
