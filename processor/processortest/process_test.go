//go:build unix

package processortest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest"
)

// echoWorker says that it is ready, answers each connection to its port, and
// says good-bye when it is asked to end.
func echoWorker(ctx context.Context) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Printf("ready %s %s\n", l.Addr(), os.Getenv("GREETING"))
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("here\n"))
			_ = conn.Close()
		}
	}()
	<-ctx.Done()
	_ = l.Close()
	fmt.Print("good-bye") // without an end of the line, as a crash could leave it
	return 3
}

var ready = regexp.MustCompile(`^ready (\S+) (.*)$`)

func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A worker runs the function it was registered under with the variables given,
// and on SIGTERM ends in its own way; its last line is seen though it lacks its
// end.
func TestWorkerTerminate(t *testing.T) {
	ctx := patience(t)
	w := processortest.StartWorker(t, "echo", "GREETING=good morning")
	match, err := w.WaitLine(ctx, ready)
	if err != nil {
		t.Fatal(err)
	}
	if match[2] != "good morning" {
		t.Errorf("the worker got %q", match[2])
	}
	if err := w.Terminate(); err != nil {
		t.Fatal(err)
	}
	if code, err := w.Wait(ctx); err != nil || code != 3 {
		t.Errorf("exit code %d, %v; want 3", code, err)
	}
	if _, err := w.WaitLine(ctx, regexp.MustCompile("^good-bye$")); err != nil {
		t.Error(err)
	}
	if _, err := w.WaitLine(ctx, ready); err == nil || !strings.Contains(err.Error(), "it has ended") {
		t.Errorf("a line that had been found before was found again: %v", err)
	}
}

// A paused worker answers nothing, and goes on when resumed; a killed one is
// gone when Kill returns.
func TestWorkerPauseKill(t *testing.T) {
	ctx := patience(t)
	w := processortest.StartWorker(t, "echo")
	match, err := w.WaitLine(ctx, ready)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Pause(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", match[1]) // the kernel accepts in its place
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a paused worker answered: %v", err)
	}
	if err := w.Resume(); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(make([]byte, 8)); err != nil {
		t.Errorf("a resumed worker does not answer: %v", err)
	}
	w.Kill()
	if code, err := w.Wait(ctx); err != nil || code != -1 {
		t.Errorf("exit code %d, %v; want -1 for a signal", code, err)
	}
}

// A name that nobody registered is an error of the worker, not a run of all
// tests in it.
func TestWorkerUnknown(t *testing.T) {
	w := processortest.StartWorker(t, "no such worker")
	if code, err := w.Wait(patience(t)); err != nil || code != 2 {
		t.Errorf("exit code %d, %v; want 2", code, err)
	}
}

// When a test binary is killed, the processes of its tests die too, even those
// that were stopped.
func TestProcessDiesWithTestBinary(t *testing.T) {
	ctx := patience(t)
	if os.Getenv("NESTED") != "" {
		fmt.Printf("child %d\n", processortest.StartWorker(t, "echo").Pid())
		<-ctx.Done()
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "NESTED=yes")
	binary := processortest.StartProcess(t, cmd)
	match, err := binary.WaitLine(ctx, regexp.MustCompile(`^child (\d+)$`))
	if err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Sscan(match[1], &child); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	binary.Kill()
	await(ctx, t, "the end of the child", func() bool { return gone(child) })
}

// gone reports whether a process that is not ours has ended; one that init has
// not waited for yet counts as ended.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// await polls until done or ctx ends.
func await(ctx context.Context, t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited for %s: %v", what, ctx.Err())
		}
	}
}
