//go:build unix

package embedded

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"
)

// A commit survives the kill of all processes, none of them is left, and the
// server comes back under the same address.
func TestKillAndRestart(t *testing.T) {
	s := newServer(t, Options{})
	url := s.URL("")
	conn := connect(t, s)
	exec1(t, conn, "create table t (x int)")
	exec1(t, conn, "insert into t values (42)")
	pids := append(childrenOf(s.proc.pid), s.proc.pid)
	if len(pids) < 3 {
		t.Fatalf("processes %v: want the postmaster, its helpers and a session", pids)
	}

	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d lives after Kill", pid)
		}
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a session outlived Kill")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.URL("") != url {
		t.Errorf("url changed from %s to %s", url, s.URL(""))
	}
	var x int
	if err := connect(t, s).QueryRow(t.Context(), "select x from t").Scan(&x); err != nil || x != 42 {
		t.Errorf("after Kill and Restart: %d, %v", x, err)
	}
	if !strings.Contains(s.LogTail(50), "was not properly shut down") {
		t.Errorf("Kill was an orderly stop:\n%s", s.LogTail(50))
	}
}

// Close leaves no process and no folder, also of a server that was killed or
// that is closed already.
func TestCloseLeavesNothing(t *testing.T) {
	before := map[string]func(*Server) error{
		"running": func(*Server) error { return nil },
		"stopped": func(s *Server) error { return s.Stop(context.Background(), StopFast) },
		"killed":  (*Server).Kill,
		"paused":  (*Server).Pause,
		"closed":  (*Server).Close,
	}
	for name, do := range before {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Options{})
			shell, pid := s.proc.shell.Process.Pid, s.proc.pid
			if err := do(s); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("folder %s is still there", s.dir)
			}
			for _, e := range processes() {
				if e.pid == shell || e.pid == pid || e.parent == shell || e.parent == pid {
					t.Errorf("process %+v is left (shell %d, postmaster %d)", e, shell, pid)
				}
			}
		})
	}
}

// A smart stop waits for the sessions within its context, and a later stop
// finishes what it began; a fast stop does not wait.
func TestStop(t *testing.T) {
	s := newServer(t, Options{})
	conn := connect(t, s)
	if err := s.Stop(t.Context(), "gently"); err == nil {
		t.Error("an unknown mode was accepted")
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Stop(short, StopSmart); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("smart stop with a session open: %v", err)
	}
	exec1(t, conn, "select 1")
	if err := s.Stop(t.Context(), StopFast); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a session outlived a fast stop")
	}
	if err := s.Stop(t.Context(), StopFast); err != nil {
		t.Errorf("stop of a stopped server: %v", err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec1(t, connect(t, s), "select 1")
}

// A paused server does not answer and loses nothing.
func TestPause(t *testing.T) {
	s := newServer(t, Options{})
	conn := connect(t, s)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := conn.Exec(short, "select 1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused server answered: %v", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	exec1(t, connect(t, s), "select 1")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(); err == nil {
		t.Error("a killed server was paused")
	}
}

// The server dies with the program that started it, whether that is killed or
// ends without Close, and takes its folder along.
func TestServerDiesWithProgram(t *testing.T) {
	for _, how := range []string{"killed", "exits"} {
		t.Run(how, func(t *testing.T) {
			cmd, in, pid, dir := startChild(t)
			if !running(pid) {
				t.Fatalf("postmaster %d does not run", pid)
			}
			end := in.Close
			if how == "killed" {
				end = cmd.Process.Kill
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			eventually(t, "the postmaster has ended", func() bool { return !running(pid) })
			eventually(t, "the folder is removed", func() bool {
				_, err := os.Stat(dir)
				return errors.Is(err, fs.ErrNotExist)
			})
		})
	}
}

// A temporary folder that the server's account cannot enter is not used, and
// does not stop the start.
func TestPrivateTempDir(t *testing.T) {
	private := t.TempDir()
	if err := os.Chmod(private, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", private)
	t.Setenv("HOME", private)
	s := newServer(t, Options{})
	exec1(t, connect(t, s), "select 1")
	if inside := strings.HasPrefix(s.dir, private); inside != (os.Geteuid() != 0) {
		t.Errorf("folder is %s, TMPDIR is %s", s.dir, private)
	}
}

// Settings reach the server; a wrong one fails with the server's words, and
// those that would move it are refused. A failed start leaves no folder.
func TestSettings(t *testing.T) {
	s := newServer(t, Options{Settings: map[string]string{"work_mem": "3MB", "fsync": "on"}})
	var got string
	err := connect(t, s).QueryRow(t.Context(),
		"select current_setting('work_mem') || current_setting('fsync') || current_setting('full_page_writes')").Scan(&got)
	if err != nil || got != "3MBonon" {
		t.Errorf("settings are %s, %v", got, err)
	}

	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", root)
	for setting, want := range map[string]string{"no_such_thing": "unrecognized configuration parameter", "port": "setting port"} {
		_, err := Start(t.Context(), Options{Settings: map[string]string{setting: "1"}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("setting %s: %v", setting, err)
		}
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A start whose context has ended leaves nothing behind and says why.
func TestStartCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := Start(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", s, err)
	}
}
