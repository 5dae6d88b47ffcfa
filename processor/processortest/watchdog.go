//go:build unix

package processortest

import (
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// watchdog is a small shell that outlives this process by a moment: it waits on
// a pipe whose other end is ours, and when that end closes, which happens
// however we die, it kills the process group it watches and removes its folder.
// A deferred call cannot do that when a test binary is killed, or when it runs
// into its timeout.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

const watchdogScript = `read -r _; kill -KILL "-$1" 2>/dev/null; [ -z "$2" ] || { sleep 1; rm -rf "$2"; }`

// watch guards the process group of pid, and the folder dir unless it is empty.
func watch(pid int, dir string) (*watchdog, error) {
	cmd := exec.Command("sh", "-c", watchdogScript, "watchdog", strconv.Itoa(pid), dir)
	// A group of its own: the interrupt key must not reach it before us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("watchdog of process %d: %w", pid, err)
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

// stop ends the watch and touches nothing. It must come before the watched
// process is waited for: after that its number may belong to another.
func (w *watchdog) stop() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	_ = w.pipe.Close()
}
