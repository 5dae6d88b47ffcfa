package pgproxy

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// Move has new connections go to another server, as a name or an address does
// that follows a failover. Those that are open stay where they are until they are
// cut. The rest of the connection string (database, user, settings) must be the
// same on both.
func (p *Proxy) Move(server string) error {
	config, err := pgconn.ParseConfig(server)
	if err != nil {
		return fmt.Errorf("pgproxy: %w", err)
	}
	network, target := pgconn.NetworkAddress(config.Host, config.Port)
	if network != "tcp" {
		return fmt.Errorf("pgproxy: %s: only TCP can be put behind a proxy", target)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	return nil
}

func (p *Proxy) to() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}
