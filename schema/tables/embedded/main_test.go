//go:build unix

package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// childMode makes the test binary a program that starts a server, says so, and
// never stops it.
const childMode = "EMBEDDED_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childMode) != "" {
		os.Exit(child())
	}
	os.Exit(m.Run())
}

func child() int {
	s, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(s.proc.pid, s.dir)
	// Until the test kills this process or closes its input.
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

// startChild returns the process, which ends at the end of its input, and its
// server's process and folder.
func startChild(t *testing.T) (cmd *exec.Cmd, in io.Closer, pid int, dir string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childMode+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	first, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
	if pid, err = strconv.Atoi(first); err != nil {
		t.Fatal(err)
	}
	return cmd, in, pid, dir
}

func newServer(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t *testing.T, s *Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec1(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// eventually fails the test where the condition does not come true.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !condition() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("it never came true: %s", what)
		}
	}
}
