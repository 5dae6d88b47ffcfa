package processortest_test

import (
	"context"
	"testing"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

func TestMain(m *testing.M) {
	processortest.Workers(map[string]func(context.Context) int{
		"echo": echoWorker,
	})
	processortest.Main(tablestest.Runner{M: m})
}
