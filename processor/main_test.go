package processor_test

import (
	"testing"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

func TestMain(m *testing.M) {
	processortest.Workers(workers)
	processortest.Main(tablestest.Runner{M: m})
}
