//go:build unix

package processortest

import (
	"context"
	"os"
	"sync"
	"testing"
)

// shared is the one broker of a test binary. It is the one mutable variable of
// this package: nothing else that the testing package offers lives as long as
// the binary does.
var shared struct {
	sync.Mutex
	broker *RealBroker
	err    error
}

// SharedBroker returns the real broker that all tests of this binary share,
// starting it for the first. Tests use topics and groups of their own, and
// leave it running. It ends with the test binary; [Main] ends it in good time.
func SharedBroker(tb testing.TB) *RealBroker {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.broker == nil && shared.err == nil {
		// Not the test's context: the broker outlives this test.
		shared.broker, shared.err = StartBroker(context.Background(), BrokerOptions{})
	}
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.broker
}

// CloseShared ends the shared broker, if one was started. It is for a TestMain
// that cannot use [Main]; without either, the broker ends a moment after the
// test binary.
func CloseShared() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.broker == nil {
		return nil
	}
	b := shared.broker
	shared.broker = nil
	return b.Close()
}

// Main runs the tests, ends the shared broker and exits. It is the body of a
// TestMain; m is the *testing.M that it was given, or something around it that
// has more to end.
func Main(m interface{ Run() int }) {
	code := m.Run()
	if err := CloseShared(); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = max(code, 1)
	}
	os.Exit(code)
}
