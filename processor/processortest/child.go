//go:build unix

package processortest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// child is a process that does not outlive this one. It leads a process group
// of its own, so that the interrupt key reaches it through us only.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was waited for
}

// startChild starts cmd under a watchdog that removes dir, unless it is empty,
// should we die first.
func startChild(cmd *exec.Cmd, dir string) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	dog, err := watch(cmd.Process.Pid, dir)
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	// The goroutine ends with the process.
	go func() {
		defer close(c.done)
		_ = cmd.Wait()
		// At once: the number of the group may soon belong to another.
		dog.stop()
	}()
	return c, nil
}

// signal sends sig; a process that has ended is no error.
func (c *child) signal(sig syscall.Signal) error {
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to process %d: %w", sig, c.cmd.Process.Pid, err)
	}
	return nil
}

// kill ends the process as a crash would, and waits until it is gone.
func (c *child) kill() error {
	err := c.signal(syscall.SIGKILL)
	<-c.done
	return err
}

// pause stops the process and waits until it has stopped: the signal alone may
// leave it the time for one more answer. A process that has ended is no error.
func (c *child) pause() error {
	if err := c.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !stopped(c.cmd.Process.Pid) {
		select {
		case <-tick.C:
		case <-c.done:
			return nil
		}
	}
	return nil
}

func (c *child) resume() error { return c.signal(syscall.SIGCONT) }

// ended reports whether the process has ended.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

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

func watch(pid int, dir string) (*watchdog, error) {
	cmd := exec.Command("sh", "-c", watchdogScript, "watchdog", strconv.Itoa(pid), dir)
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

// stop ends the watch and touches nothing.
func (w *watchdog) stop() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	_ = w.pipe.Close()
}
