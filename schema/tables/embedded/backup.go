package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// Backup is a copy of a server's data, made while it ran. It lies in the
// server's folder and ends with it.
type Backup struct {
	dir string
}

// Backup copies the data of the server, which goes on meanwhile.
func (s *Server) Backup(ctx context.Context) (Backup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := os.MkdirTemp(s.dir, "backup-")
	if err == nil {
		err = s.copyData(ctx, dir)
	}
	if err != nil {
		return Backup{}, fmt.Errorf("embedded: back postgres up: %w", err)
	}
	return Backup{dir}, nil
}

// RestorePoint gives a name to this moment, after all that is committed and
// before all that will be, and returns when the log up to it is in the archive.
// The server must run with Options.Archive.
func (s *Server) RestorePoint(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.restorePoint(ctx, name); err != nil {
		return fmt.Errorf("embedded: name the restore point %s: %w", name, err)
	}
	return nil
}

func (s *Server) restorePoint(ctx context.Context, name string) error {
	if s.settings["archive_mode"] != "on" {
		return errNoArchive
	}
	var segment string
	// The segment is switched in a statement of its own, lest it be the one
	// before the point.
	err := s.with(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "select pg_create_restore_point($1)", name); err != nil {
			return err
		}
		return conn.QueryRow(ctx, "select pg_walfile_name(pg_switch_wal())").Scan(&segment)
	})
	if err != nil {
		return err
	}
	return s.await(ctx, "select coalesce(last_archived_wal >= $1, false) from pg_stat_archiver", segment)
}

var errNoArchive = errors.New("the server keeps no archive: start it with Options.Archive")

// Restore stops the server, puts the backup in the place of its data, brings it
// forward to the restore point and returns when it takes writes, at the address
// that it had. What was committed after the point is gone. A server that does
// not run, whatever ended it, can be restored too.
func (s *Server) Restore(ctx context.Context, b Backup, point string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.restore(ctx, b, point); err != nil {
		return fmt.Errorf("embedded: restore postgres to %s: %w", point, err)
	}
	return nil
}

func (s *Server) restore(ctx context.Context, b Backup, point string) error {
	if err := s.stop(ctx, StopImmediate); err != nil {
		return err
	}
	s.releaseMemory()
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	if err := s.account.copyFolder(b.dir, s.data(), nil); err != nil {
		return err
	}
	err := s.recoverAs("recovery.signal", map[string]string{
		"restore_command": fmt.Sprintf(`cp "%s/%%f" "%%p"`, s.archive()), "recovery_target_name": point, "recovery_target_action": "promote",
	})
	if err != nil {
		return err
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	return s.await(ctx, "select not pg_is_in_recovery()")
}

// archiveLog has the server keep its log. A segment appears in the archive under
// its name when it is complete.
func (s *Server) archiveLog() error {
	if err := os.Mkdir(s.archive(), 0o700); err != nil {
		return err
	}
	s.settings["archive_mode"] = "on"
	s.settings["archive_command"] = fmt.Sprintf(`cp "%%p" "%[1]s/%%f.part" && mv "%[1]s/%%f.part" "%[1]s/%%f"`, s.archive())
	return s.account.own(s.archive())
}

func (s *Server) archive() string { return filepath.Join(s.dir, "archive") }
