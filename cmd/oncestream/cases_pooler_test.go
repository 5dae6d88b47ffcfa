//go:build broker

package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// sessionLimits is what PgBouncer is told to set where it connects.
const sessionLimits = "; set idle_in_transaction_session_timeout = 10000; set statement_timeout = 60000; set lock_timeout = 2000"

// poolerProgram is the PgBouncer of this machine.
func poolerProgram() string {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // not on the path of all users
	}
	return program
}

// tracksStatements reports whether the PgBouncer can keep the prepared statements
// of its clients apart, which it does since version 1.21.
func tracksStatements(tb testing.TB) bool {
	tb.Helper()
	said, err := exec.CommandContext(tb.Context(), poolerProgram(), "--version").Output()
	if err != nil {
		tb.Fatalf("%v (the package pgbouncer is needed)", err)
	}
	var major, minor int
	_, err = fmt.Sscanf(string(said), "PgBouncer %d.%d", &major, &minor)
	noErr(tb, err)
	return major > 1 || minor >= 21
}

// startPooler starts a PgBouncer in transaction mode with two connections to
// the server and returns the case's URL through it. It tracks as many prepared
// statements as said, where it can.
func (w *caseWorld) startPooler(server *embedded.Server, limits string, statements int) string {
	w.tb.Helper()
	program, track := poolerProgram(), ""
	if tracksStatements(w.tb) {
		track = fmt.Sprintf("max_prepared_statements = %d\n", statements)
	}
	dir, err := os.MkdirTemp("", "oncestream-pgbouncer-")
	noErr(w.tb, err)
	w.tb.Cleanup(func() { noErr(w.tb, os.RemoveAll(dir)) })
	noErr(w.tb, os.Chmod(dir, 0o755)) //nolint:gosec // its account must enter
	port := unusedPort(w.tb)
	file := filepath.Join(dir, "pgbouncer.ini")
	noErr(w.tb, os.WriteFile(filepath.Join(dir, "users"), []byte(`"postgres" ""`+"\n"), 0o644)) //nolint:gosec // as above
	noErr(w.tb, os.WriteFile(file, fmt.Appendf(nil, `[databases]
* = host=127.0.0.1 port=%d connect_query='set search_path = %s%s'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s/users
pool_mode = transaction
default_pool_size = 2
%s`, server.Port(), w.db.Schema, limits, port, dir, track), 0o644)) //nolint:gosec // as above
	args := []string{file}
	if os.Geteuid() == 0 {
		args = []string{"-u", "nobody", file}
	}
	cmd := exec.CommandContext(w.tb.Context(), program, args...) //nolint:gosec // the program of the test
	log := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		w.tb.Fatalf("%v (the package pgbouncer is needed)", err)
	}
	w.tb.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended it
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	eventually(w.tb, func() (bool, string) {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil, "pgbouncer does not answer:\n" + log.String()
	})
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Host: address, Path: "/postgres", RawQuery: "sslmode=disable"}).String()
}

// unusedPort returns a port that nothing listens on.
func unusedPort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noErr(tb, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Proves that the program works through a PgBouncer in transaction mode (case
// D07), by its default URL where the pooler keeps prepared statements apart, and
// where it does not by a URL that says so: three instances on two connections,
// each effect once.
func TestCasePooler(t *testing.T) {
	ways := map[string]struct {
		statements int
		query      string
	}{"described": {0, "&default_query_exec_mode=cache_describe"}}
	if tracksStatements(t) {
		ways["tracked"] = struct {
			statements int
			query      string
		}{100, ""}
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			w, server := newServerWorld(t, "testdata/cases/D07")
			w.env["DATABASE_URL"] = w.startPooler(server, sessionLimits, way.statements) + way.query
			runs := []*caseRun{w.background(), w.background(), w.background()}
			w.waitFor(`select sum(next_offset) from consumer_offset`, "9000")
			for _, r := range runs {
				r.finish()
				if log := r.stderr.String(); strings.Contains(log, "42P05") || strings.Contains(log, "26000") {
					t.Errorf("prepared statements were lost or met twice:\n%s", log)
				}
			}
			w.value(`select count(*) || ' of ' || count(distinct id) from event`, "9000 of 9000")
			w.value(`select count(*) from dead_letter`, "0")
			w.account()
		})
	}
}

// Proves that a pooler which is set up in a way that cannot work is named at the
// start, with what to do about it (case D07).
func TestCasePoolerRefused(t *testing.T) {
	for name, c := range map[string]struct{ limits, query, says string }{
		"statements": {sessionLimits, "", "add default_query_exec_mode=cache_describe to the URL"},
		"limits":     {"", "&default_query_exec_mode=cache_describe", "no idle_in_transaction_session_timeout: have it set where the pooler connects"},
	} {
		t.Run(name, func(t *testing.T) {
			w, server := newServerWorld(t, "testdata/cases/D07")
			w.env["DATABASE_URL"] = w.startPooler(server, c.limits, 0) + c.query
			got := w.run("run", w.file("pipeline.yaml"), "--to-end")
			if got.code != exitFault || !strings.Contains(got.complaints(), c.says) || strings.Contains(got.stderr, "will try again") {
				t.Errorf("it exits with %d and says, instead of %q:\n%s", got.code, c.says, got.stderr)
			}
		})
	}
}

// Proves that migrations refuse a pooler, which could leave their settings to a
// stranger (case D10), and that nothing is left behind.
func TestCasePoolerMigrate(t *testing.T) {
	w, server := newServerWorld(t, "testdata/cases/D07")
	w.env["DATABASE_URL"] = w.startPooler(server, sessionLimits, 0)
	got := w.run("migrate", "up", w.file("pipeline.yaml"))
	if got.code != exitFault || !strings.Contains(got.complaints(), "connect to the server itself") {
		t.Errorf("it exits with %d:\n%s", got.code, got.stderr)
	}
	w.value(`select count(*) from pg_locks where locktype = 'advisory'`, "0")
}
