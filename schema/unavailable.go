package schema

import "errors"

// UnavailableError says that something which a [Decoder] or a sink needs besides
// the record, such as a schema registry or a table, is not there. It says nothing of the
// message, which may be in perfect order: it must not become a [Fault] and must
// not lead to a dead letter. The same message is to be tried again later.
type UnavailableError struct {
	// Err says what is not there, and how that was found.
	Err error
}

// Unavailable returns err as an [*UnavailableError], and nil where err is nil.
// An error that says already that it is unavailable is returned as it is.
func Unavailable(err error) error {
	if err == nil || IsUnavailable(err) {
		return err
	}
	return &UnavailableError{Err: err}
}

// Error returns the text of Err.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Unavailable reports true: trying again can help. User code can give its own
// errors the same method to the same effect.
func (e *UnavailableError) Unavailable() bool { return true }

// IsUnavailable reports whether err, or an error within it, has a method
// Unavailable() bool that answers true. The caller of a [Decoder] asks it before
// [AsFault], which makes a fault of every error.
func IsUnavailable(err error) bool {
	var u interface{ Unavailable() bool }
	return errors.As(err, &u) && u.Unavailable()
}
