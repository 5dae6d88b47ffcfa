//go:build broker

package processortest_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/oncestream/oncestream/processor/processortest"
)

// A real broker takes the same steps as kfake, and tests share it.
func TestHelpersOnBroker(t *testing.T) {
	b := processortest.SharedBroker(t)
	helpers(t, b.Client)
	if again := processortest.SharedBroker(t); again != b {
		t.Error("a second broker was started")
	}
}

// A killed broker comes back on its old address with its old records, and so
// does one that was stopped in good order.
func TestBrokerRestart(t *testing.T) {
	b := processortest.Broker(t, processortest.BrokerOptions{})
	b.CreateTopic(t, "t", 1)
	b.Produce(t, "t", 0, processortest.Values("before the crash")...)
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, b, time.Second); err == nil {
		t.Error("a killed broker answers")
	}
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Produce(t, "t", 0, processortest.Values("after the crash")...)
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := read(t, b.Client, "t", 0, 2)
	if string(got[0].Value) != "before the crash" || string(got[1].Value) != "after the crash" {
		t.Errorf("records %q and %q", got[0].Value, got[1].Value)
	}
}

// A paused broker answers nothing until it goes on. A listener with
// authentication lets in who knows the password, and nobody else.
func TestBrokerPauseAndListener(t *testing.T) {
	b := processortest.Broker(t, processortest.BrokerOptions{
		Listeners: []processortest.Listener{{Name: "LOGIN", Protocol: "SASL_PLAINTEXT"}},
		Properties: map[string]string{
			"sasl.enabled.mechanisms": "PLAIN",
			"listener.name.login.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required " +
				`user_alice="secret";`,
		},
	})
	if err := b.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, b, time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused broker: %v, want no answer at all", err)
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	login := kgo.SeedBrokers(b.ListenerAddr("LOGIN"))
	for password, ok := range map[string]bool{"secret": true, "guess": false} {
		err := ping(t, b, 20*time.Second, login, kgo.SASL(plain.Auth{User: "alice", Pass: password}.AsMechanism()))
		if (err == nil) != ok {
			t.Errorf("password %q: %v", password, err)
		}
	}
	if addr := b.ListenerAddr("OTHER"); addr != "" {
		t.Errorf("a listener that nobody asked for is at %s", addr)
	}
}

// A broker from the environment is used and cannot be stopped by a test.
func TestBrokerFromEnvironment(t *testing.T) {
	addr := processortest.SharedBroker(t).Addrs()[0]
	t.Setenv("ONCESTREAM_TEST_KAFKA_BROKERS", addr)
	b, err := processortest.StartBroker(t.Context(), processortest.BrokerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	topic := unique("environment")
	b.CreateTopic(t, topic, 1)
	restart := func() error { return b.Restart(t.Context()) }
	stop := func() error { return b.Stop(t.Context()) }
	for i, forbidden := range []func() error{b.Kill, b.Pause, b.Resume, stop, restart} {
		if err := forbidden(); !errors.Is(err, processortest.ErrNotOurs) {
			t.Errorf("call %d: %v, want ErrNotOurs", i, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	b.Produce(t, topic, 0, processortest.Values("still there")...)
}

// A broker whose settings are refused says so, with its log, and leaves no
// folder behind.
func TestBrokerRefusesSettings(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := processortest.StartBroker(t.Context(), processortest.BrokerOptions{
		Properties: map[string]string{"num.io.threads": "none"},
	})
	if err == nil || !regexp.MustCompile("num.io.threads").MatchString(err.Error()) {
		t.Errorf("error %v, want the broker's own words about num.io.threads", err)
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// When a test binary is killed, its broker dies and its folder goes.
func TestBrokerDiesWithTestBinary(t *testing.T) {
	if os.Getenv("NESTED") != "" {
		b := processortest.Broker(t, processortest.BrokerOptions{Source: processortest.FromJars})
		t.Logf("broker at %s", b.Addrs()[0])
		<-t.Context().Done()
	}
	tmp := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "NESTED=yes", "TMPDIR="+tmp)
	binary := processortest.StartProcess(t, cmd)
	match, err := binary.WaitLine(ctx, regexp.MustCompile(`broker at (\S+)`))
	if err != nil {
		t.Fatal(err)
	}
	binary.Kill()
	await(ctx, t, "the end of the broker at "+match[1], func() bool { return refused(ctx, match[1]) })
	await(ctx, t, "the end of its folder", func() bool {
		left, err := os.ReadDir(tmp)
		return err == nil && len(left) == 0
	})
}

func refused(ctx context.Context, addr string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return err != nil
}
