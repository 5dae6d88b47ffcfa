//go:build broker

package processor_test

import (
	"testing"

	"github.com/oncestream/oncestream/processor/processortest"
)

// newClient is the broker of a test: the real one that this binary shares.
func newClient(tb testing.TB) *processortest.Client { return processortest.SharedBroker(tb).Client }
