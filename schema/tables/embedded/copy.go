package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// copyData copies the data of the running server to a folder (PostgreSQL manual,
// section 25.3.3: "Making a Base Backup Using the Low Level API"). What it copies
// changes meanwhile; the log since the start of the backup, to which the label
// points, makes it whole. The program pg_basebackup would do the same, and is not
// among the binaries that are downloaded.
func (s *Server) copyData(ctx context.Context, to string) error {
	return s.with(ctx, func(conn *pgx.Conn) error {
		// Both calls must be made in one session: its end ends the backup.
		begin, end := "pg_backup_start('oncestream', true)", "pg_backup_stop()"
		if conn.PgConn().ParameterStatus("server_version") < "15" {
			begin, end = "pg_start_backup('oncestream', true, false)", "pg_stop_backup(false)"
		}
		if _, err := conn.Exec(ctx, "select "+begin); err != nil {
			return err
		}
		if err := s.account.copyFolder(s.data(), to, perishable); err != nil {
			return err
		}
		var label string
		if err := conn.QueryRow(ctx, "select labelfile from "+end).Scan(&label); err != nil {
			return err
		}
		return s.account.write(filepath.Join(to, "backup_label"), label)
	})
}

// perishable reports whether a copy must not have the file: the log comes from
// elsewhere, and the rest is of the running server.
func perishable(path string) bool {
	first, _, inside := strings.Cut(path, "/")
	if inside {
		return slices.Contains([]string{"pg_wal", "pg_replslot", "pg_stat_tmp", "pg_subtrans", "pg_notify"}, first)
	}
	return first == "postmaster.pid" || first == "postmaster.opts"
}

// copyFolder copies a folder of files and folders, but for what skip names by its
// path within it; nil skips nothing. A file that vanishes meanwhile is left out.
func (a account) copyFolder(from, to string, skip func(path string) bool) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != from {
			return nil
		}
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, inside)
		switch {
		case skip != nil && skip(inside):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return a.makeFolder(target)
		}
		return a.copyFile(path, target)
	})
}

func (a account) makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return a.own(path)
}

func (a account) copyFile(from, to string) error {
	source, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close(), a.own(to))
}

func (a account) write(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return a.own(path)
}

// recoverAs has the server's next start read the log by these settings; the
// signal is the name of the file that says what for.
func (s *Server) recoverAs(signal string, settings map[string]string) error {
	file := filepath.Join(s.data(), "postgresql.auto.conf")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text = fmt.Appendf(text, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	return errors.Join(s.account.write(file, string(text)), s.account.write(filepath.Join(s.data(), signal), ""))
}
