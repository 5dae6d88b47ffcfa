package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables"
	"github.com/oncestream/oncestream/sinks"
)

// openPipeline checks the ledger's version, looks at the tables of the sinks and
// returns the processor of the configuration.
func (a *app) openPipeline(ctx context.Context, c *config) (*processor.Processor, error) {
	var pipeline processor.Pipeline[schema.Row]
	err := withConn(ctx, c.engine.Postgres.URL, func(conn *pgx.Conn) (err error) {
		if err := tables.Check(ctx, conn, c.engine.Postgres.Schema); err != nil {
			return err
		}
		pipeline, err = c.pipeline(ctx, conn)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.onDuplicate == "log" {
		pipeline.OnDuplicate = a.logDuplicate
	}
	c.engine.Logger = a.log
	return processor.New(c.engine, pipeline)
}

// pipeline completes the configuration with what the catalog says of the
// tables. Which fields are read from a record depends on it.
func (c *config) pipeline(ctx context.Context, conn *pgx.Conn) (processor.Pipeline[schema.Row], error) {
	var found faults
	var all []sinks.Sink[schema.Row]
	paths := slices.Concat(c.keyFields(), c.fingerprint.paths())
	for i := range c.sinks {
		b := sinkBuilder{config: c, sink: &c.sinks[i]}
		sink, err := b.build(ctx, conn)
		if err != nil {
			return processor.Pipeline[schema.Row]{}, err
		}
		found = append(found, b.faults...)
		all = append(all, sink)
		paths = append(paths, b.paths...)
	}
	return processor.Pipeline[schema.Row]{
		Handler:     c.handler,
		Decode:      schema.Rows(schema.NewFields(paths...)),
		Key:         c.keyFunc(),
		Sink:        sinks.Tee(all...),
		Fingerprint: c.fingerprint.sum(),
	}, found.err()
}

// logDuplicate tells of a duplicate. A transaction that is tried again tells of
// it again.
func (a *app) logDuplicate(ctx context.Context, _ pgx.Tx, m schema.Message[schema.Row], d processor.Duplicate) error {
	a.log.LogAttrs(ctx, slog.LevelInfo, "duplicate",
		slog.String("position", m.Position()), slog.String("key", m.ID.String()), slog.String("cause", string(d.Cause)),
		slog.Int("first_partition", int(d.Partition)), slog.Int64("first_offset", d.Offset))
	return nil
}

// sinkBuilder makes a sink of its configuration and its table.
type sinkBuilder struct {
	config *config
	sink   *sinkConfig
	table  *sinks.Table
	paths  []string // of the fields that it reads
	faults faults
}

// preparedSink is what all sinks of the pipeline file are.
type preparedSink interface {
	sinks.Sink[schema.Row]
	sinks.Preparer
}

// build returns the sink. What is wrong with the configuration is in b.faults;
// an error is the database's.
func (b *sinkBuilder) build(ctx context.Context, conn *pgx.Conn) (sinks.Sink[schema.Row], error) {
	table, err := sinks.Describe(ctx, conn, b.sink.table)
	if err != nil {
		return nil, b.blame(b.sink.path+".table", conn, err)
	}
	b.table = table
	sink := b.make()
	if len(b.faults) > 0 {
		return sink, nil
	}
	return sink, b.blame(b.sink.path, conn, sink.Prepare(ctx, conn))
}

// blame turns errors of the configuration into faults and returns the others.
func (b *sinkBuilder) blame(path string, conn *pgx.Conn, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok || conn.IsClosed() {
		return err
	}
	prefix := "sinks: " + b.sink.kind + " " + b.sink.table + ": "
	for line := range strings.SplitSeq(err.Error(), "\n") {
		b.faults = append(b.faults, b.config.at(path, "%s", strings.TrimPrefix(line, prefix)))
	}
	return nil
}

func (b *sinkBuilder) make() preparedSink {
	s := b.sink
	switch s.kind {
	case "insert":
		return &sinks.Insert[schema.Row]{Table: s.table, Columns: b.columns("columns", b.orAll(s.columns))}
	case "upsert":
		return &sinks.Upsert[schema.Row]{
			Table: s.table, Key: names(s.key), Columns: b.columns("columns", b.withKey()),
			Mode: sinks.Mode(s.mode), Tombstone: sinks.TombstoneRule(s.tombstone),
		}
	default:
		return &sinks.Sum[schema.Row]{Table: s.table, Key: b.columns("key", s.key), Add: b.columns("add", s.add)}
	}
}

// columns checks the names against the table and notes the fields to read.
func (b *sinkBuilder) columns(name string, list columns) []sinks.Column[schema.Row] {
	var out []sinks.Column[schema.Row]
	for _, c := range list {
		b.checkColumn(name, c.name)
		if c.number != nil {
			out = append(out, sinks.Const[schema.Row](c.name, *c.number))
			continue
		}
		column := sinks.Field(c.name, c.field)
		b.paths = append(b.paths, sinks.Paths(column)...)
		out = append(out, column)
	}
	return out
}

func (b *sinkBuilder) checkColumn(list, name string) {
	c, ok := b.table.Column(name)
	if list == "columns" && slices.ContainsFunc(b.sink.key, func(k column) bool { return k.name == name }) {
		list = "key"
	}
	path := b.sink.path + "." + list + "." + name
	switch {
	case !ok:
		var right []string
		for _, c := range b.table.Columns {
			right = append(right, c.Name)
		}
		b.faults = append(b.faults, b.config.at(path, "no such column in table %s%s", b.table.Name, didYouMean(name, right)))
	case c.Generated:
		b.faults = append(b.faults, b.config.at(path, "the column is generated always and cannot be written"))
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
