//go:build !broker

package processor_test

import (
	"testing"

	"github.com/oncestream/oncestream/processor/processortest"
)

// newClient is the broker of a test: a cluster in the process. With the build
// tag "broker" the same tests run on a real one.
func newClient(tb testing.TB) *processortest.Client { return processortest.Kafka(tb).Client }
