//go:build broker

package processortest_test

import (
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest"
)

// A real broker takes the same steps as kfake.
func TestHelpersOnBroker(t *testing.T) {
	start := time.Now()
	b := processortest.SharedBroker(t)
	t.Logf("started in %v", time.Since(start))
	helpers(t, b.Client)
}

// A killed broker comes back on its old address with its old records; a paused
// one answers nothing until it goes on.
func TestBrokerKillRestart(t *testing.T) {
	b := processortest.Broker(t, processortest.BrokerOptions{})
	b.CreateTopic(t, "t", 1)
	b.Produce(t, "t", 0, processortest.Values("before the crash")...)
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Produce(t, "t", 0, processortest.Values("after the crash")...)
	if got := read(t, b.Client, "t", 0, 2); string(got[0].Value) != "before the crash" {
		t.Errorf("first record %q", got[0].Value)
	}
}
