package schema

import (
	"context"
	"errors"
)

// firstTry is the key of [FirstTry] in a context.
type firstTry struct{}

// FirstTry returns a context that tells a sink that its caller stands ready to
// apply the batch once more. Two things then pay that would not otherwise, and
// that a sink does under such a context only:
//
//   - to write by a way that cannot tell a duplicate, and to answer [Contested]
//     where there is one;
//   - to name the one message at which the database stopped, although others
//     behind it may be at fault too.
//
// The caller rolls back and applies the batch again, under a context that is no
// FirstTry: without the message that was named, or all of it. A sink that is
// not told takes the careful way, so nothing is lost by not using this.
func FirstTry(ctx context.Context) context.Context {
	return context.WithValue(ctx, firstTry{}, true)
}

// IsFirstTry reports whether ctx is one of [FirstTry].
func IsFirstTry(ctx context.Context) bool { return ctx.Value(firstTry{}) != nil }

// ContestedError says that a batch met rows that are there already, in a way
// that does not tell which. It is no message's fault: the same batch is applied
// again under a context that is no [FirstTry].
type ContestedError struct {
	// Err says what was met. It is shown and not unwrapped: an error of the
	// database within it would be taken for a fault of a message.
	Err error
}

// Contested returns err as a [*ContestedError].
func Contested(err error) error { return &ContestedError{Err: err} }

// Error returns the text of Err.
func (e *ContestedError) Error() string { return e.Err.Error() }

// Unavailable reports true, so that a caller which knows nothing of first tries
// tries again and blames no message.
func (e *ContestedError) Unavailable() bool { return true }

// IsContested reports whether a [*ContestedError] is within err.
func IsContested(err error) bool { return errors.As(err, new(*ContestedError)) }
