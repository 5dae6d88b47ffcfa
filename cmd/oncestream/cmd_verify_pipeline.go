package main

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables"
)

// bareTables takes the schemas off the names of the sinks' tables, so that they
// are looked for in the search path, where the copies come first, and returns the
// names as they were.
func (c *config) bareTables() []string {
	var names []string
	bare := func(name *string) {
		if *name == "" {
			return
		}
		if !slices.Contains(names, *name) {
			names = append(names, *name)
		}
		if _, table, ok := strings.Cut(*name, "."); ok && !strings.ContainsAny(*name, `"`) {
			*name = table
		}
	}
	for i := range c.sinks {
		s := &c.sinks[i]
		bare(&s.table)
		bare(&s.ledger.accounts)
		bare(&s.ledger.entries)
	}
	return names
}

// hasStatement reports whether a sink may write to tables that it does not name.
func (c *config) hasStatement() bool {
	return slices.ContainsFunc(c.sinks, func(s sinkConfig) bool { return s.kind == "sql" })
}

// openOnCopies returns the processor of the configuration for a verification. It
// needs no ledger. The tables are looked at first where they are, since what is
// wrong with the file is told in its own words.
func (a *app) openOnCopies(ctx context.Context, c *config, targets []string) (*processor.Processor, error) {
	var pipeline processor.Pipeline[schema.Row]
	err := withConn(ctx, c.engine.Postgres.URL, func(conn *pgx.Conn) (err error) {
		if err := findTargets(ctx, conn, targets); err != nil {
			return err
		}
		pipeline, err = c.pipeline(ctx, conn)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.decode.registry != nil {
		context.AfterFunc(ctx, c.decode.registry.Close)
	}
	c.engine.Logger = a.log
	return processor.New(c.engine, pipeline)
}

// findTargets puts the schemas that the file names before the session's own, where
// the bare names of their tables are found.
func findTargets(ctx context.Context, conn *pgx.Conn, targets []string) error {
	path, err := tables.SearchPath(ctx, conn)
	if err != nil {
		return err
	}
	var named []string
	for _, t := range targets {
		if s, _, ok := strings.Cut(t, "."); ok && !strings.ContainsAny(t, `"`) && !slices.Contains(named, s) {
			named = append(named, s)
		}
	}
	if len(named) == 0 {
		return nil
	}
	quoted := make([]string, 0, len(named)+len(path))
	for _, s := range slices.Concat(named, path) {
		quoted = append(quoted, pgx.Identifier{s}.Sanitize())
	}
	_, err = conn.Exec(ctx, "select set_config('search_path', $1, false)", strings.Join(quoted, ", "))
	return err
}
