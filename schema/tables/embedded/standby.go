package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby starts another server that follows this one's log, behind its commits
// (asynchronously), and answers reads only. It returns when the log streams. The
// caller must Close the standby.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	standby, err := s.standby(ctx)
	if err != nil {
		return nil, fmt.Errorf("embedded: start a standby: %w", err)
	}
	return standby, nil
}

func (s *Server) standby(ctx context.Context) (*Server, error) {
	dir, err := makeFolder(s.account)
	if err != nil {
		return nil, err
	}
	other := &Server{bin: s.bin, dir: dir, account: s.account, settings: maps.Clone(s.settings), room: s.room, env: s.env}
	if err := other.makeRoom(); err != nil {
		return nil, errors.Join(err, other.remove())
	}
	if _, archives := s.settings["archive_mode"]; archives {
		err = other.archiveLog() // into a folder of its own, once it is promoted
	}
	if err == nil {
		err = other.follow(ctx, s)
	}
	if err != nil {
		return nil, errors.Join(err, other.Close())
	}
	return other, nil
}

func (s *Server) follow(ctx context.Context, primary *Server) error {
	if err := primary.copyData(ctx, s.data()); err != nil {
		return err
	}
	address := fmt.Sprintf("host=127.0.0.1 port=%d user=%s sslmode=disable", primary.port, superuser)
	// A primary that was restored has kept in its settings to which point.
	err := s.recoverAs("standby.signal", map[string]string{"primary_conninfo": address, "restore_command": "", "recovery_target_name": ""})
	if err != nil {
		return err
	}
	if err := s.runOnFreePort(ctx); err != nil {
		return err
	}
	return s.await(ctx, "select exists (select from pg_stat_wal_receiver where status = 'streaming')")
}

// Detach has a standby receive nothing more: what the other server commits from
// now on is missing here. It stays a standby.
func (s *Server) Detach(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.with(ctx, func(conn *pgx.Conn) error {
		for _, sql := range []string{"alter system set primary_conninfo = ''", "select pg_reload_conf()"} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.await(ctx, "select not exists (select from pg_stat_wal_receiver)")
	}
	if err != nil {
		return fmt.Errorf("embedded: detach the standby: %w", err)
	}
	return nil
}

// Promote makes a standby a server in its own right and returns when it takes
// writes. The other server is not told: while it runs, there are two.
func (s *Server) Promote(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.await(ctx, "select pg_promote()"); err != nil {
		return fmt.Errorf("embedded: promote the standby: %w", err)
	}
	return nil
}

// with runs f on a connection of its own.
func (s *Server) with(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.url(database))
	if err != nil {
		return err
	}
	return errors.Join(f(conn), conn.Close(ctx))
}

// await asks the server until it answers true, within startLimit.
func (s *Server) await(ctx context.Context, condition string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	return s.with(ctx, func(conn *pgx.Conn) error {
		for {
			var holds bool
			err := conn.QueryRow(ctx, condition, args...).Scan(&holds)
			if holds {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%w\n%s", err, s.LogTail(20))
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return fmt.Errorf("%s: %w\n%s", condition, ctx.Err(), s.LogTail(20))
			}
		}
	})
}
