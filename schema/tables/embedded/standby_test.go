//go:build unix

package embedded

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A server that is restored has what was committed before the point and nothing
// of what came after, takes writes under the same address, and does so again
// after a restart. Without an archive, and to a point that was never named, it
// says so.
func TestRestore(t *testing.T) {
	s := newServer(t, Options{Archive: true})
	url := s.URL("")
	conn := connect(t, s)
	exec1(t, conn, "create table t as select 1 as x")
	backup, err := s.Backup(t.Context())
	noErr(t, err)
	exec1(t, conn, "insert into t values (2)")
	noErr(t, s.RestorePoint(t.Context(), "here"))
	exec1(t, conn, "insert into t values (3)")

	noErr(t, s.Restore(t.Context(), backup, "here"))
	conn = connect(t, s)
	exec1(t, conn, "insert into t values (4)")
	noErr(t, s.Restart(t.Context()))
	if got := column(t, s); got != "1 2 4" {
		t.Errorf("after the restore the table has %s, want 1 2 4", got)
	}
	if s.URL("") != url {
		t.Errorf("url changed from %s to %s", url, s.URL(""))
	}
	if err := s.Restore(t.Context(), backup, "nowhere"); err == nil || !strings.Contains(err.Error(), "recovery target") {
		t.Errorf("restored to a point that does not exist: %v", err)
	}
	if err := newServer(t, Options{}).RestorePoint(t.Context(), "here"); !errors.Is(err, errNoArchive) {
		t.Errorf("without an archive: %v", err)
	}
}

// A standby follows and refuses writes; detached it misses what comes, also after
// a restart; promoted it takes writes, beside the first server.
func TestStandby(t *testing.T) {
	primary := newServer(t, Options{})
	exec1(t, connect(t, primary), "create table t as select 1 as x")
	standby, err := primary.Standby(t.Context())
	noErr(t, err)
	t.Cleanup(func() { noErr(t, standby.Close()) })
	exec1(t, connect(t, primary), "insert into t values (2)")
	eventually(t, "the standby has followed", func() bool { return column(t, standby) == "1 2" })
	var refused *pgconn.PgError
	if _, err := connect(t, standby).Exec(t.Context(), "insert into t values (0)"); !errors.As(err, &refused) || refused.Code != "25006" {
		t.Errorf("a write to a standby: %v", err)
	}

	noErr(t, standby.Detach(t.Context()))
	exec1(t, connect(t, primary), "insert into t values (3)")
	noErr(t, standby.Restart(t.Context()))
	noErr(t, standby.Promote(t.Context()))
	exec1(t, connect(t, standby), "insert into t values (4)")
	if got := column(t, standby) + ", " + column(t, primary); got != "1 2 4, 1 2 3" {
		t.Errorf("the promoted server and the old one have %s, want 1 2 4, 1 2 3", got)
	}
}

// column returns the numbers in t.
func column(t *testing.T, s *Server) (numbers string) {
	t.Helper()
	conn := connect(t, s)
	defer conn.Close(context.Background())
	noErr(t, conn.QueryRow(t.Context(), "select string_agg(x::text, ' ' order by x) from t").Scan(&numbers))
	return numbers
}

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A standby of a server that was restored can be promoted, and as the new primary
// it can be restored in its turn.
func TestStandbyOfRestored(t *testing.T) {
	s := newServer(t, Options{Archive: true})
	exec1(t, connect(t, s), "create table t as select 1 as x")
	backup, err := s.Backup(t.Context())
	noErr(t, err)
	noErr(t, s.RestorePoint(t.Context(), "here"))
	noErr(t, s.Restore(t.Context(), backup, "here"))

	standby, err := s.Standby(t.Context())
	noErr(t, err)
	t.Cleanup(func() { noErr(t, standby.Close()) })
	noErr(t, standby.Detach(t.Context()))
	noErr(t, standby.Promote(t.Context()))
	exec1(t, connect(t, standby), "insert into t values (2)")
	backup, err = standby.Backup(t.Context())
	noErr(t, err)
	noErr(t, standby.RestorePoint(t.Context(), "there"))
	exec1(t, connect(t, standby), "insert into t values (3)")
	noErr(t, standby.Restore(t.Context(), backup, "there"))
	if got := column(t, standby); got != "1 2" {
		t.Errorf("the restored standby has %s, want 1 2", got)
	}
}
