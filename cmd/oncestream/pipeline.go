package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

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
	if c.decode.registry != nil {
		context.AfterFunc(ctx, c.decode.registry.Close)
	}
	c.engine.Logger = a.log
	return processor.New(c.engine, pipeline)
}

// pipeline completes the configuration with what the catalog says of the
// tables. Which fields are read from a record depends on it.
func (c *config) pipeline(ctx context.Context, conn *pgx.Conn) (processor.Pipeline[schema.Row], error) {
	built, err := c.buildSinks(ctx, conn)
	if err != nil {
		return processor.Pipeline[schema.Row]{}, err
	}
	paths := slices.Concat(c.keyFields(), c.fingerprint.paths())
	all := make([]sinks.Sink[schema.Row], len(built))
	for i, b := range built {
		all[i] = b.made
		paths = append(paths, b.paths...)
	}
	sink := sinks.Tee(all...)
	if err := sink.Prepare(ctx, conn); err != nil { // each is prepared; what is left is their order
		if isServers(err) || conn.IsClosed() {
			return processor.Pipeline[schema.Row]{}, err
		}
		return processor.Pipeline[schema.Row]{}, faults{c.at("sinks", "%s", strings.TrimPrefix(err.Error(), "sinks: "))}
	}
	return processor.Pipeline[schema.Row]{
		Handler:     c.handler,
		Decode:      c.decode.decoder(schema.NewFields(paths...)),
		Key:         c.keyFunc(),
		Sink:        sink,
		Fingerprint: c.fingerprint.sum(),
		Guard:       processor.Guard(c.guard),
	}, nil
}

// buildSinks makes all sinks, or says all that is wrong with them.
func (c *config) buildSinks(ctx context.Context, conn *pgx.Conn) ([]*sinkBuilder, error) {
	var found faults
	var built []*sinkBuilder
	for i := range c.sinks {
		b := &sinkBuilder{config: c, sink: &c.sinks[i]}
		if err := b.build(ctx, conn); err != nil {
			return nil, err
		}
		found = append(found, b.faults...)
		built = append(built, b)
	}
	return built, found.err()
}

// logDuplicate tells of a duplicate. A transaction that is tried again tells of
// it again.
func (a *app) logDuplicate(ctx context.Context, _ pgx.Tx, m schema.Message[schema.Row], d processor.Duplicate) error {
	a.log.LogAttrs(ctx, slog.LevelInfo, "duplicate",
		slog.String("position", m.Position()), slog.String("key", m.ID.String()), slog.String("cause", string(d.Cause)),
		slog.Int("first_partition", int(d.Partition)), slog.Int64("first_offset", d.Offset))
	return nil
}
