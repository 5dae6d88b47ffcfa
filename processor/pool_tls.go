package processor

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// renewAuthorities has the pool read sslrootcert anew for each connection. pgx
// reads sslcert and sslkey each time they are asked for, but the authorities once:
// a pool would refuse a server whose certificate is signed by the next authority
// until the process is restarted. A TLS configuration that is not from the
// connection string, as somebody has set another, is left alone.
func renewAuthorities(cfg *pgxpool.Config, url string, parsed *tls.Config) {
	if parsed == nil || cfg.ConnConfig.TLSConfig != parsed {
		return
	}
	before := cfg.BeforeConnect
	cfg.BeforeConnect = func(ctx context.Context, conn *pgx.ConnConfig) error {
		fresh, err := pgx.ParseConfig(url)
		if err != nil {
			return fmt.Errorf("read the certificates of postgres.url again: %w", err)
		}
		trustAs(conn.TLSConfig, fresh.TLSConfig)
		for i := range min(len(conn.Fallbacks), len(fresh.Fallbacks)) {
			trustAs(conn.Fallbacks[i].TLSConfig, fresh.Fallbacks[i].TLSConfig)
		}
		if before == nil {
			return nil
		}
		return before(ctx, conn)
	}
}

// trustAs has to trust what from trusts. The rest stays: pgx finds the loader of
// the client's certificate by the identity of to.
func trustAs(to, from *tls.Config) {
	if to != nil && from != nil {
		to.RootCAs, to.VerifyPeerCertificate, to.VerifyConnection = from.RootCAs, from.VerifyPeerCertificate, from.VerifyConnection
	}
}
