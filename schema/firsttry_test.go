package schema_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/schema"
)

// Proves that a context is a first try only where it was made one, and that
// what is derived from it stays one.
func TestFirstTry(t *testing.T) {
	if schema.IsFirstTry(t.Context()) {
		t.Error("a context that nobody marked is a first try")
	}
	if !schema.IsFirstTry(schema.FirstTry(t.Context())) {
		t.Error("a marked context is none")
	}
}

// Proves that a contested batch is found through wrapping, is not taken for a
// fault of a message, and does not show the database's error to whoever asks for
// its SQLSTATE.
func TestContested(t *testing.T) {
	err := fmt.Errorf("sinks: insert t: %w", schema.Contested(&pgconn.PgError{Code: "23505", Message: "duplicate key"}))
	if !schema.IsContested(err) || !schema.IsUnavailable(err) {
		t.Errorf("%v is not contested", err)
	}
	if errors.As(err, new(*pgconn.PgError)) || errors.As(err, new(*schema.Fault)) {
		t.Errorf("%v would be blamed on a message", err)
	}
	if schema.IsContested(schema.Unavailable(errors.New("down"))) {
		t.Error("what is unavailable is not contested")
	}
}
