package offsets_test

import (
	"testing"

	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

func TestMain(m *testing.M) { tablestest.Main(m) }
