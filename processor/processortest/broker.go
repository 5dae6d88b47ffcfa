//go:build unix

package processortest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// startTimeout bounds how long a broker may take until it answers; a cold Java
// on a busy machine with two cores takes about ten seconds.
const startTimeout = 2 * time.Minute

// ErrNotOurs is the answer to a request to stop a broker that was given by its
// address: it may serve others.
var ErrNotOurs = errors.New("processortest: the broker of ONCESTREAM_TEST_KAFKA_BROKERS is not ours to stop or restart; unset the variable")

// machine is what a broker of ours runs in: a process or a container.
type machine interface {
	start(ctx context.Context) error
	alive(ctx context.Context) bool
	stop(ctx context.Context) error
	kill() error
	pause() error
	resume() error
	remove(ctx context.Context) error
	logTail(ctx context.Context) string
}

// RealBroker is a running Apache Kafka broker. Its methods are for one
// goroutine at a time.
type RealBroker struct {
	*Client
	layout  layout
	machine machine // nil: given by its address
	running bool
}

// StartBroker starts a broker, or takes the one given by the environment, and
// waits until it answers. The caller closes it. Tests want [Broker] or
// [SharedBroker].
func StartBroker(ctx context.Context, opts BrokerOptions) (*RealBroker, error) {
	sources := opts.sources(ctx)
	if len(sources) == 0 {
		return nil, errors.New("processortest: start a broker: this machine has none: set " + brokersVariable +
			", start a Docker engine, or install Java 17 and Maven")
	}
	var errs []error
	for _, source := range sources {
		b, err := startFrom(ctx, source, opts)
		if err == nil {
			return b, nil
		}
		errs = append(errs, fmt.Errorf("processortest: start a broker from %s: %w", source, err))
	}
	return nil, errors.Join(errs...)
}

// sources returns where to try, in order. An engine that answers but cannot
// pull the image leaves the jars; a broker that someone named leaves nothing.
func (o BrokerOptions) sources(ctx context.Context) []Source {
	switch {
	case o.Source != FromAnywhere:
		return []Source{o.Source}
	case os.Getenv(brokersVariable) != "":
		return []Source{FromEnvironment}
	}
	var sources []Source
	if dockerAnswers(ctx) == nil {
		sources = append(sources, FromDocker)
	}
	if hasCommands("java", "mvn") {
		sources = append(sources, FromJars)
	}
	return sources
}

const brokersVariable = "ONCESTREAM_TEST_KAFKA_BROKERS"

func hasCommands(names ...string) bool {
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			return false
		}
	}
	return true
}

func startFrom(ctx context.Context, source Source, opts BrokerOptions) (*RealBroker, error) {
	if source == FromEnvironment {
		addrs := strings.Split(os.Getenv(brokersVariable), ",")
		b := &RealBroker{Client: NewClient(addrs...)}
		return b, b.ready(ctx)
	}
	b := &RealBroker{}
	var err error
	if source == FromDocker {
		b.machine, b.layout, err = newContainerBroker(ctx, opts)
	} else {
		b.machine, b.layout, err = newJarBroker(ctx, opts)
	}
	if err != nil {
		return nil, err
	}
	b.Client = NewClient(b.ListenerAddr(plainListener))
	if err := b.Restart(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// ready waits until the broker has registered with its controller, answers, and
// coordinates groups and transactions. The first question for a coordinator
// makes the broker create its internal topics, which it answers with an error
// that the first test would see.
func (b *RealBroker) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	k, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.RetryTimeout(time.Second))
	if err != nil {
		return err
	}
	defer k.Close()
	err = retry(ctx, 100*time.Millisecond, func() error { return b.ask(ctx, k) })
	switch {
	case err == nil:
		return nil
	case b.machine == nil:
		return fmt.Errorf("no answer at %v: %w", b.addrs, err)
	}
	log := b.machine.logTail(context.WithoutCancel(ctx))
	return fmt.Errorf("no answer at %v: %w; its log ends with:\n%s", b.addrs, err, log)
}

// ask asks once whether the broker is there, and gives up for good where its
// process has ended.
func (b *RealBroker) ask(ctx context.Context, k *kgo.Client) error {
	if b.machine != nil && !b.machine.alive(ctx) {
		return backoff.Permanent(errors.New("the broker has ended"))
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	adm := kadm.NewClient(k)
	if meta, err := adm.BrokerMetadata(ctx); err != nil {
		return err
	} else if len(meta.Brokers) == 0 {
		return errors.New("no broker has registered yet")
	}
	return errors.Join(adm.FindGroupCoordinators(ctx, "oncestream").Error(),
		adm.FindTxnCoordinators(ctx, "oncestream").Error())
}

// ListenerAddr returns the address ("host:port") of a listener that the options
// asked for, and "" for one that they did not.
func (b *RealBroker) ListenerAddr(name string) string {
	if b.layout.ports[name] == 0 {
		return ""
	}
	return b.layout.addr(name)
}

// Stop stops the broker in good order, and kills it when that takes longer than
// 30 seconds, which is an error. A broker that is down stays so.
func (b *RealBroker) Stop(ctx context.Context) error {
	if b.machine == nil {
		return ErrNotOurs
	}
	if !b.running {
		return nil
	}
	b.running = false
	return b.machine.stop(ctx)
}

// Kill ends the broker by SIGKILL, as a crash would.
func (b *RealBroker) Kill() error {
	if b.machine == nil {
		return ErrNotOurs
	}
	if !b.running {
		return nil
	}
	b.running = false
	return b.machine.kill()
}

// Restart stops the broker, unless it is down, starts it again on its old ports
// and data, and waits until it answers.
func (b *RealBroker) Restart(ctx context.Context) error {
	if err := b.Stop(ctx); err != nil {
		return err
	}
	if err := b.machine.start(ctx); err != nil {
		return err
	}
	b.running = true
	return b.ready(ctx)
}

// Start starts a broker that is down on its old ports and data, and waits until it
// answers. One that runs is left alone.
func (b *RealBroker) Start(ctx context.Context) error {
	if b.machine == nil || b.running {
		return nil
	}
	return b.Restart(ctx)
}

// Pause freezes the broker: its connections stay open and answer nothing.
func (b *RealBroker) Pause() error {
	if b.machine == nil {
		return ErrNotOurs
	}
	return b.machine.pause()
}

// Resume lets a paused broker go on.
func (b *RealBroker) Resume() error {
	if b.machine == nil {
		return ErrNotOurs
	}
	return b.machine.resume()
}

// Close ends the broker and removes its data. A broker given by its address is
// left alone.
func (b *RealBroker) Close() error {
	if b.machine == nil {
		return nil
	}
	return errors.Join(b.Kill(), b.machine.remove(context.Background()))
}

// Broker starts a real broker for one test and closes it when the test ends.
// For a test that neither stops its broker nor needs settings of its own,
// [SharedBroker] saves the start.
func Broker(tb testing.TB, opts BrokerOptions) *RealBroker {
	tb.Helper()
	b, err := StartBroker(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Errorf("processortest: close the broker: %v", err)
		}
	})
	return b
}
