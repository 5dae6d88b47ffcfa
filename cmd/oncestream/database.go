package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// parseURL reads a connection string. pgx leaves the password out of its error.
func parseURL(url string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, usagef("the database's URL: %w", err)
	}
	return cfg, nil
}

// withConn runs do on a connection of its own.
func withConn(ctx context.Context, url string, do func(*pgx.Conn) error) error {
	cfg, err := parseURL(url)
	if err != nil {
		return err
	}
	return withConfig(ctx, cfg, do)
}

func withConfig(ctx context.Context, cfg *pgx.ConnConfig, do func(*pgx.Conn) error) error {
	// Nothing is asked twice here, so no statement needs a name, which a pooler
	// in transaction mode could mix up.
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect to the database of postgres.url (DATABASE_URL, --database-url): %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}
