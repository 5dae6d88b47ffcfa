package sinks

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// prepareTable is the Prepare of a sink that writes to one table: it looks at
// the table, compiles what the sink needs to know of it, and puts that in place
// for the batches that begin from now on. what names the sink in errors.
func prepareTable[P any](ctx context.Context, conn *pgx.Conn, what, name string, compile func(*Table) (*P, error), plan *atomic.Pointer[P]) error {
	compiled, err := compileTable(ctx, conn, name, compile)
	if err != nil {
		return prefixed(err, "sinks: "+what)
	}
	plan.Store(compiled)
	return nil
}

func compileTable[P any](ctx context.Context, conn *pgx.Conn, name string, compile func(*Table) (*P, error)) (*P, error) {
	if err := checkMode(conn); err != nil {
		return nil, err
	}
	table, err := Describe(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	return compile(table)
}
