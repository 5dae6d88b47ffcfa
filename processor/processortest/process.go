//go:build unix

package processortest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a broker may take to stop when asked to.
const stopGrace = 30 * time.Second

// process is a broker that runs from jars.
type process struct {
	dir  string   // holds the data, the settings and the log
	java []string // the command line up to the main class
	cmd  *exec.Cmd
	dog  *watchdog
	done chan struct{} // closed when the running process has ended
}

// newProcess fetches the jars, and formats a new folder for one broker.
func newProcess(ctx context.Context, opts BrokerOptions) (*process, layout, error) {
	jars, err := fetchJars(ctx)
	if err != nil {
		return nil, layout{}, err
	}
	dir, err := os.MkdirTemp("", "oncestream-kafka-")
	if err != nil {
		return nil, layout{}, err
	}
	p := &process{dir: dir, java: javaCommand(jars, opts)}
	l, err := newLayout("127.0.0.1", filepath.Join(dir, "data"), opts)
	if err == nil {
		err = p.format(ctx, l.properties(opts))
	}
	if err != nil {
		return nil, l, errors.Join(err, os.RemoveAll(dir))
	}
	return p, l, nil
}

func javaCommand(jars string, opts BrokerOptions) []string {
	jvm := opts.JVM
	if jvm == nil {
		jvm = []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"}
	}
	java := append([]string{"java"}, jvm...)
	return append(java, "-Dlog4j2.level=WARN", "-cp", filepath.Join(jars, "*"))
}

// format writes the settings and prepares the folder of the log for them.
func (p *process) format(ctx context.Context, properties map[string]string) error {
	var b strings.Builder
	for name, value := range properties {
		// Line ends (of a PEM key, say) are written as the format wants them.
		fmt.Fprintf(&b, "%s=%s\n", name, strings.ReplaceAll(value, "\n", `\n`))
	}
	if err := os.WriteFile(p.settings(), []byte(b.String()), 0o600); err != nil {
		return err
	}
	args := append(p.java[1:len(p.java):len(p.java)],
		"kafka.tools.StorageTool", "format", "-t", newClusterID(), "-c", p.settings())
	if out, err := exec.CommandContext(ctx, p.java[0], args...).CombinedOutput(); err != nil {
		return fmt.Errorf("format the broker's folder: %w\n%s", err, out)
	}
	return nil
}

// newClusterID returns 16 random bytes in the form that Kafka wants, which must
// not begin with a dash: the tool would read an option.
func newClusterID() string {
	for {
		id := make([]byte, 16)
		_, _ = rand.Read(id) // never fails
		if s := base64.RawURLEncoding.EncodeToString(id); s[0] != '-' {
			return s
		}
	}
}

func (p *process) settings() string { return filepath.Join(p.dir, "server.properties") }

// start starts the broker's process and the watchdog that ends it with ours.
func (p *process) start(context.Context) error {
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append(p.java[1:len(p.java):len(p.java)], "kafka.Kafka", p.settings())
	p.cmd = exec.Command(p.java[0], args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	if p.dog, err = watch(p.cmd.Process.Pid, p.dir); err != nil {
		return errors.Join(err, p.cmd.Process.Kill(), p.cmd.Wait())
	}
	p.done = make(chan struct{})
	// The goroutine ends with the process, which stop, kill or the watchdog end.
	go func(cmd *exec.Cmd, done chan<- struct{}) {
		defer close(done)
		_ = cmd.Wait()
	}(p.cmd, p.done)
	return nil
}

func (p *process) exited() <-chan struct{} { return p.done }

// stop asks the broker to end and waits for it.
func (p *process) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		p.dog.stop()
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("the broker did not stop in time and was killed"), ctx.Err(), p.kill())
	}
}

// kill ends the broker as a crash would, and waits until it is gone.
func (p *process) kill() error {
	err := p.signal(syscall.SIGKILL)
	<-p.done
	p.dog.stop()
	return err
}

func (p *process) pause() error  { return p.signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.signal(syscall.SIGCONT) }

func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to the broker: %w", sig, err)
	}
	return nil
}

func (p *process) remove(context.Context) error { return os.RemoveAll(p.dir) }

func (p *process) logFile() string { return filepath.Join(p.dir, "broker.log") }

// logTail returns the last lines of the broker's log.
func (p *process) logTail(context.Context) string {
	f, err := os.Open(p.logFile())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-logTailBytes), io.SeekStart)
	}
	tail, _ := io.ReadAll(f)
	return string(tail)
}

const logTailBytes = 4000
