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
	"slices"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a broker may take to stop when asked to.
const stopGrace = 30 * time.Second

// jarBroker is a broker that runs from jars.
type jarBroker struct {
	dir   string   // holds the data, the settings and the log
	java  []string // the command line up to the main class
	child *child
}

// newJarBroker fetches the jars, and formats a new folder for one broker.
func newJarBroker(ctx context.Context, opts BrokerOptions) (*jarBroker, layout, error) {
	b, l, err := makeJarBroker(ctx, opts, map[int]bool{})
	if err == nil {
		err = b.format(ctx, newClusterID(), l.properties(opts))
	}
	if err != nil && b != nil {
		return nil, l, errors.Join(err, os.RemoveAll(b.dir))
	}
	return b, l, err
}

// makeJarBroker makes the folder of a broker that is to be formatted, and chooses
// ports that are none of those taken.
func makeJarBroker(ctx context.Context, opts BrokerOptions, taken map[int]bool) (*jarBroker, layout, error) {
	jars, err := fetchJars(ctx)
	if err != nil {
		return nil, layout{}, err
	}
	dir, err := os.MkdirTemp("", "oncestream-kafka-")
	if err != nil {
		return nil, layout{}, err
	}
	l, err := newLayout("127.0.0.1", filepath.Join(dir, "data"), opts, taken)
	return &jarBroker{dir: dir, java: javaCommand(jars, opts)}, l, err
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
func (b *jarBroker) format(ctx context.Context, cluster string, properties map[string]string) error {
	var text strings.Builder
	for name, value := range properties {
		// Line ends (of a PEM key, say) are written as the format wants them.
		fmt.Fprintf(&text, "%s=%s\n", name, strings.ReplaceAll(value, "\n", `\n`))
	}
	if err := os.WriteFile(b.settings(), []byte(text.String()), 0o600); err != nil {
		return err
	}
	tool := slices.Concat(b.java, []string{"kafka.tools.StorageTool", "format", "-t", cluster, "-c", b.settings()})
	if out, err := exec.CommandContext(ctx, tool[0], tool[1:]...).CombinedOutput(); err != nil {
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

func (b *jarBroker) settings() string { return filepath.Join(b.dir, "server.properties") }

// start starts the broker's process.
func (b *jarBroker) start(context.Context) error {
	log, err := os.OpenFile(b.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(b.java[0], slices.Concat(b.java[1:], []string{"kafka.Kafka", b.settings()})...)
	cmd.Stdout, cmd.Stderr = log, log
	b.child, err = startChild(cmd, b.dir)
	return err
}

func (b *jarBroker) alive(context.Context) bool { return !b.child.ended() }

// stop asks the broker to end and waits for it.
func (b *jarBroker) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	if err := b.child.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-b.child.done:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("the broker did not stop in time and was killed"), ctx.Err(), b.kill())
	}
}

func (b *jarBroker) kill() error   { return b.child.kill() }
func (b *jarBroker) pause() error  { return b.child.pause() }
func (b *jarBroker) resume() error { return b.child.resume() }

func (b *jarBroker) remove(context.Context) error { return os.RemoveAll(b.dir) }

func (b *jarBroker) logFile() string { return filepath.Join(b.dir, "broker.log") }

// logTail returns the last lines of the broker's log.
func (b *jarBroker) logTail(context.Context) string {
	f, err := os.Open(b.logFile())
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
