package schema_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/oncestream/oncestream/schema"
)

// What did not answer is told from a message's own fault through any number of
// wrappings, keeps its cause and text, and is marked once.
func TestUnavailable(t *testing.T) {
	err := schema.Unavailable(fmt.Errorf("registry: %w", context.DeadlineExceeded))
	wrapped := fmt.Errorf("orders/0@7: %w", err)
	if !schema.IsUnavailable(wrapped) || !errors.Is(wrapped, context.DeadlineExceeded) {
		t.Errorf("%v lost its mark or its cause", wrapped)
	}
	if _, ok := errors.AsType[*schema.Fault](wrapped); ok {
		t.Error("an outage is no message's fault")
	}
	if got := schema.Unavailable(wrapped); got != wrapped { //nolint:errorlint // the very error is meant
		t.Errorf("marked twice: %#v", got)
	}
	if err.Error() != "registry: context deadline exceeded" {
		t.Errorf("text %q", err)
	}
}

// A fault, a plain error and no error are not unavailable.
func TestNotUnavailable(t *testing.T) {
	for _, err := range []error{nil, errors.New("x"), schema.Faultf(nil, schema.ReasonDecode, "x")} {
		if schema.IsUnavailable(err) {
			t.Errorf("%v counts as unavailable", err)
		}
	}
	if err := schema.Unavailable(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}
