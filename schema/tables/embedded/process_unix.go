//go:build unix

package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	pauseSignal  = syscall.SIGSTOP
	resumeSignal = syscall.SIGCONT
)

// keeper is the shell that stands between the program and the server. Its fd 3
// is the end of a pipe of which the program holds the other; its fd 4 tells the
// program the server's process id, and by its end that the server has ended.
//
// The watcher ignores TERM before it shuts the server down: else the end of the
// server could make the shell kill the watcher before it has said, by its exit
// code, that the program is gone and the folder is to be removed.
const keeper = `
folder=$1; shift
"$@" 3<&- 4>&- &
server=$!
echo $server >&4
(
	exec 4>&-
	read -r line <&3
	trap '' TERM
	kill -QUIT $server; kill -CONT $server
	exit 7
) &
watcher=$!
wait $server; code=$?
kill $watcher 2>/dev/null
wait $watcher
if [ $? = 7 ]; then rm -rf "$folder"; fi
exit $code
`

// process is one run of the server.
type process struct {
	shell    *exec.Cmd
	lifeline *os.File // its end ends the server
	status   *os.File // it ends with the server
	pid      int      // of the postmaster, which is also its children's parent
}

func startProcess(who account, env []string, dir, logFile string, args []string) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	lifeOther, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifeOther.Close()
	status, statusOther, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, life.Close())
	}
	defer statusOther.Close()
	cmd := who.command(context.Background(), dir, "/bin/sh", append([]string{"-c", keeper, "sh", dir}, args...)...)
	cmd.Env = append(cmd.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lifeOther, statusOther}
	p := &process{shell: cmd, lifeline: life, status: status}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, life.Close(), status.Close())
	}
	// The parent's copy must go, or the end of the status would never be seen.
	statusOther.Close()
	if p.pid, err = readPid(status); err != nil {
		return nil, errors.Join(err, p.reap())
	}
	return p, nil
}

func readPid(status io.Reader) (int, error) {
	line, err := bufio.NewReader(status).ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("read the server's process id: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

// waitExit reports whether the server has ended by the deadline; the zero time
// means none.
func (p *process) waitExit(deadline time.Time) bool {
	if err := p.status.SetReadDeadline(deadline); err != nil {
		return true
	}
	_, err := p.status.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// reap collects the shell after the server's end, and returns how it ended.
func (p *process) reap() error {
	err := p.shell.Wait()
	return errors.Join(err, p.lifeline.Close(), p.status.Close())
}

func (p *process) stop(ctx context.Context, mode StopMode) error {
	signals := map[StopMode]os.Signal{
		StopSmart: syscall.SIGTERM, StopFast: syscall.SIGINT, StopImmediate: syscall.SIGQUIT,
	}
	sig, ok := signals[mode]
	if !ok {
		return fmt.Errorf("no such mode (known: %s, %s, %s)", StopSmart, StopFast, StopImmediate)
	}
	if err := p.signal(p.pid, sig); err != nil {
		return err
	}
	if mode == StopImmediate {
		// A paused server would not see it.
		if err := p.signalAll(resumeSignal); err != nil {
			return err
		}
	}
	for !p.waitExit(time.Now().Add(50 * time.Millisecond)) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	_ = p.reap() // how it ended is no matter: it was told to
	return nil
}

// kill first stops the postmaster, so that it starts no child that the list
// would miss.
func (p *process) kill() error {
	err := p.signal(p.pid, syscall.SIGSTOP)
	children := childrenOf(p.pid)
	for _, pid := range append(children, p.pid) {
		err = errors.Join(err, p.signal(pid, syscall.SIGKILL))
	}
	p.waitExit(time.Time{})
	_ = p.reap()
	for _, pid := range children {
		err = errors.Join(err, awaitGone(pid))
	}
	return err
}

func (p *process) signalAll(sig os.Signal) error {
	var err error
	for _, pid := range append(childrenOf(p.pid), p.pid) {
		err = errors.Join(err, p.signal(pid, sig))
	}
	return err
}

// signal is content with a process that has ended.
func (p *process) signal(pid int, sig os.Signal) error {
	if err := syscall.Kill(pid, sig.(syscall.Signal)); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s to process %d: %w", sig, pid, err)
	}
	return nil
}

// awaitGone returns when the process is no more. As long as one of them lives,
// it holds the shared memory and the next start would be refused.
func awaitGone(pid int) error {
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for running(pid) {
		select {
		case <-look.C:
		case <-limit.C:
			return fmt.Errorf("process %d does not end", pid)
		}
	}
	return nil
}

// releaseMemory removes the small block of shared memory that a killed server
// leaves behind: the next start would do it, but there is none. The seventh
// line of postmaster.pid holds its key and its id.
func (s *Server) releaseMemory() {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return // stopped in order, nothing is left
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return
	}
	if f := strings.Fields(lines[6]); len(f) == 2 {
		_ = s.account.command(context.Background(), s.dir, "ipcrm", "-m", f[1]).Run()
	}
}
