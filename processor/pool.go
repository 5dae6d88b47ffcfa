package processor

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// openPool returns a pool whose sessions cannot hold a partition for ever: the
// server itself ends a transaction that has waited, or been silent, too long.
// It connects to nothing yet.
func openPool(ctx context.Context, group string, p Postgres) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(p.URL)
	if err != nil {
		return nil, fmt.Errorf("config: postgres.url: %w", err)
	}
	cfg.MaxConns = int32(p.Concurrency) + 2 //nolint:gosec // withDefaults has checked the range
	if _, set := cfg.ConnConfig.RuntimeParams["application_name"]; !set {
		cfg.ConnConfig.RuntimeParams["application_name"] = "oncestream " + group
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	parsed := cfg.ConnConfig.TLSConfig
	if p.Configure != nil {
		if err := p.Configure(cfg); err != nil {
			return nil, fmt.Errorf("config: postgres: %w", err)
		}
	}
	renewAuthorities(cfg, p.URL, parsed)
	settings := p.sessionSettings()
	for name := range cfg.ConnConfig.RuntimeParams {
		delete(settings, name)
	}
	after := cfg.AfterConnect
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := prepareSession(ctx, conn, settings); err != nil || after == nil {
			return err
		}
		return after(ctx, conn)
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}

func (p Postgres) sessionSettings() map[string]string {
	return map[string]string{
		idleSetting:                     milliseconds(p.IdleTimeout),
		"statement_timeout":             milliseconds(p.TransactionTimeout),
		"lock_timeout":                  milliseconds(p.LockTimeout),
		"default_transaction_isolation": "read committed",
		// A peer that vanishes without a word is noticed within half a minute.
		"tcp_keepalives_idle":     "10",
		"tcp_keepalives_interval": "5",
		"tcp_keepalives_count":    "4",
	}
}

const connectTimeout = 10 * time.Second

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}
