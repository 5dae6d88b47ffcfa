package offsets_test

import (
	"context"
	"testing"

	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// exampleTB lets an example, which is passed no testing.TB, have a schema of its
// own: it is as much of one as tablestest asks for, and fails by panic.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func newExampleDB() (db *tablestest.DB, drop func()) {
	tb := &exampleTB{}
	return tablestest.New(tb), tb.drop
}

func (tb *exampleTB) drop() {
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.cleanups[i]()
	}
}

func (*exampleTB) Name() string              { return "Example" }
func (*exampleTB) Helper()                   {}
func (*exampleTB) Context() context.Context  { return context.Background() }
func (tb *exampleTB) Cleanup(f func())       { tb.cleanups = append(tb.cleanups, f) }
func (*exampleTB) Fatal(args ...any)         { panic(args) }
func (*exampleTB) Fatalf(f string, a ...any) { panic(append([]any{f}, a...)) }
