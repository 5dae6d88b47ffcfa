package processor

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// readOnlyTransaction is the SQLSTATE of a server that takes no writes.
const readOnlyTransaction = "25006"

// elsewhere drops all connections of the pool if err says that the server takes
// no writes: it is a standby, or was the primary until a failover. Its sessions
// work, so the pool would keep them, and go on asking the wrong server when the
// address has long moved to the right one.
func elsewhere(pool *pgxpool.Pool, err error) error {
	if server, ok := errors.AsType[*pgconn.PgError](err); !ok || server.Code != readOnlyTransaction {
		return err
	}
	pool.Reset()
	return fmt.Errorf("the server takes no writes, as a standby that was not promoted: connecting anew until one does "+
		"(with several hosts in postgres.url, target_session_attrs=read-write finds it): %w", err)
}
