//go:build unix

package processortest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest"
)

// A broker that the environment names and that is not there is an error that
// says where it was looked for and what was met, and nothing else is started in
// its place.
func TestBrokerFromEnvironmentAbsent(t *testing.T) {
	t.Setenv("ONCESTREAM_TEST_KAFKA_BROKERS", "127.0.0.1:1")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // beyond the second after which the client tells what it met
	defer cancel()
	b, err := processortest.StartBroker(ctx, processortest.BrokerOptions{})
	if err == nil {
		t.Fatalf("a broker was found at %v", b.Addrs())
	}
	for _, want := range []string{"from environment", "127.0.0.1:1", "connection refused"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %q is not the context's", err)
	}
}
