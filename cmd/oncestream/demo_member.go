package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"sync"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/processor"
)

// memberOptions are the hidden flags by which the demo holds the processes that
// it starts.
type memberOptions struct {
	untilInputEnds bool
	pausePast      int64
}

func (o *memberOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.untilInputEnds, "until-input-ends", false, "stop gracefully at the end of the standard input, which comes with the end of the parent process")
	f.Int64Var(&o.pausePast, "pause-past", math.MaxInt64, "stand still before the COMMIT of the first batch that passes this offset, and say so, to be killed there")
	for _, name := range []string{"until-input-ends", "pause-past"} {
		_ = f.MarkHidden(name) // it fails for unknown flags only
	}
}

// asMember makes c and the context those of a member of the demo's group. In a
// run that a person has started it changes nothing.
func (a *app) asMember(ctx context.Context, o memberOptions, c *config) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if o.pausePast != math.MaxInt64 {
		c.engine.Hooks.Step = a.pausePast(o.pausePast)
	}
	if o.untilInputEnds {
		// It ends with the process at the latest: a read cannot be called off.
		go func() {
			_, _ = io.Copy(io.Discard, a.stdin)
			cancel()
		}()
	}
	return ctx, cancel
}

// pausePast returns a hook that never returns from the COMMIT of the first batch
// past the offset. A process that stands there is in mid-batch for certain: all
// that the batch does is done, and nothing of it is committed.
func (a *app) pausePast(offset int64) func(processor.Step, processor.BatchInfo) {
	var once sync.Once
	return func(s processor.Step, b processor.BatchInfo) {
		if s == processor.StepCommit && b.To > offset {
			once.Do(func() {
				fmt.Fprintf(a.stdout, "%d %d %d\n", b.Partition, b.From, b.To)
				select {}
			})
		}
	}
}

// member is a process of the demo's group.
type member struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	// said is the first line of its standard output; it is closed with it.
	said chan string
	// ended is closed when the process has ended; err is its error then.
	ended chan struct{}
	err   error
}

// startMember starts `oncestream run` on the demo's pipeline file. The end of
// ctx kills it, for then the services end too and nobody looks at what is left;
// the end of this process stops it.
func (a *app) startMember(ctx context.Context, name, file string, log io.Writer, more ...string) (*member, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &member{name: name, said: make(chan string, 1), ended: make(chan struct{})}
	m.cmd = exec.CommandContext(ctx, program)
	m.cmd.Args = append([]string{os.Args[0], "run", file, "--until-input-ends", "--log-format=text", "--log-level=info"}, more...)
	m.cmd.Env = a.plainEnvironment()
	m.cmd.Stderr = log
	if m.stdin, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go m.wait(out)
	return m, nil
}

// plainEnvironment leaves out what would override the demo's pipeline file.
func (a *app) plainEnvironment() []string {
	var plain []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if v, ok := a.env(name); ok {
			plain = append(plain, name+"="+v)
		}
	}
	return plain
}

// wait reads what the member says until it ends.
func (m *member) wait(out io.Reader) {
	lines := bufio.NewScanner(out)
	for first := true; lines.Scan(); first = false {
		if first {
			m.said <- lines.Text()
		}
	}
	close(m.said)
	m.err = m.cmd.Wait()
	close(m.ended)
}

// stop asks the member to stop, and waits until it has. A member that was
// killed on purpose is stopped, too.
func (m *member) stop() error {
	if err := m.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	<-m.ended
	if m.err != nil {
		return fmt.Errorf("%s: %w", m.name, m.err)
	}
	return nil
}

// kill ends the member without warning, as SIGKILL does.
func (m *member) kill() error {
	err := m.cmd.Process.Kill()
	<-m.ended
	return err
}
