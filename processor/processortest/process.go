//go:build unix

package processortest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// Process is a process under test. It is killed when its test ends, and dies
// with the test binary however that ends.
type Process struct {
	*child
	name   string
	output *output
}

// StartProcess starts cmd and gathers its standard output and standard error.
// If the test fails, the end of what it said is logged.
func StartProcess(tb testing.TB, cmd *exec.Cmd) *Process {
	tb.Helper()
	p, err := StartCommand(cmd)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("processortest: the end of what %s said:\n%s", p.name, p.output.tail(outputTail))
		}
	})
	return p
}

// StartCommand is [StartProcess] outside of a test: the caller kills the process.
// Where cmd has a Stdout or a Stderr of its own, that is not gathered.
func StartCommand(cmd *exec.Cmd) (*Process, error) {
	p := &Process{name: cmd.String(), output: newOutput()}
	if cmd.Stdout == nil {
		cmd.Stdout = p.output
	}
	if cmd.Stderr == nil {
		cmd.Stderr = p.output
	}
	// A grandchild that keeps the pipe open must not keep us.
	cmd.WaitDelay = 5 * time.Second
	c, err := startChild(cmd, "")
	if err != nil {
		return nil, fmt.Errorf("processortest: start %s: %w", p.name, err)
	}
	p.child = c
	// Ends with the process.
	go func() {
		<-c.done
		p.output.close()
	}()
	return p, nil
}

// outputTail is how many lines are shown of a process whose test failed.
const outputTail = 60

// Pid returns the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill ends the process by SIGKILL and waits until it is gone. It is no error
// that it was gone before.
func (p *Process) Kill() { _ = p.kill() }

// Terminate asks the process to end, by SIGTERM.
func (p *Process) Terminate() error { return p.signal(syscall.SIGTERM) }

// Dump has a Go program say where its goroutines are, and end, by SIGQUIT.
func (p *Process) Dump() error { return p.signal(syscall.SIGQUIT) }

// Pause stops the process by SIGSTOP, and returns when it has stopped: it keeps
// its connections and does nothing.
func (p *Process) Pause() error { return p.pause() }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.resume() }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// ExitCode is the code of a process that has ended, -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Wait waits until the process has ended and returns its exit code, -1 if a
// signal ended it.
func (p *Process) Wait(ctx context.Context) (code int, err error) {
	select {
	case <-p.done:
		return p.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("processortest: %s has not ended: %w", p.name, ctx.Err())
	}
}

// WaitLine waits for a line of output that matches, behind the line that the
// call before it found, and returns the match and its submatches. It fails when
// the process ends without such a line, or ctx does.
func (p *Process) WaitLine(ctx context.Context, pattern *regexp.Regexp) ([]string, error) {
	for {
		match, more := p.output.find(pattern)
		if match != nil {
			return match, nil
		}
		var err error
		select {
		case <-more:
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-p.output.closed:
			// What came between the look and the end.
			if match, _ := p.output.find(pattern); match != nil {
				return match, nil
			}
			err = errors.New("it has ended")
		}
		return nil, fmt.Errorf("processortest: no line like %q from %s: %w; it said last:\n%s",
			pattern, p.name, err, p.output.tail(outputTail))
	}
}

// Lines returns all lines of output so far.
func (p *Process) Lines() []string { return p.output.all() }

// workerVariable names the worker function in a worker process's environment.
const workerVariable = "ONCESTREAM_TEST_WORKER"

// Workers makes the test binary able to run again as one of the workers, which
// [StartWorker] asks for. It is the first call of a TestMain. In a worker
// process it runs the function and exits with what that returns; otherwise it
// does nothing. The function's ctx ends on SIGTERM; a second SIGTERM ends the
// process.
func Workers(workers map[string]func(ctx context.Context) int) {
	name, ok := os.LookupEnv(workerVariable)
	if !ok {
		return
	}
	work := workers[name]
	if work == nil {
		fmt.Fprintf(os.Stderr, "processortest: no worker named %q was given to Workers\n", name)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal has its usual effect
	os.Exit(work(ctx))
}

// StartWorker starts a worker of this test binary in a process of its own. env
// are further variables ("NAME=value"), by which it learns what to do.
func StartWorker(tb testing.TB, name string, env ...string) *Process {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatalf("processortest: start worker %s: %v", name, err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), append(env, workerVariable+"="+name)...)
	p := StartProcess(tb, cmd)
	p.name = "worker " + name
	return p
}
