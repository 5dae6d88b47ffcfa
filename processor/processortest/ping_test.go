//go:build broker || docker

package processortest_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/processor/processortest"
)

// ping asks the broker once, over a connection of its own.
func ping(t *testing.T, b *processortest.RealBroker, limit time.Duration, opts ...kgo.Opt) error {
	t.Helper()
	k, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Addrs()...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return k.Ping(ctx)
}
