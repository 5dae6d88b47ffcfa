package schema

import (
	"errors"
	"fmt"
	"strings"
)

// Reason is a code for why a message cannot be handled. Codes are stable: they
// are stored, counted and filtered by.
type Reason string

// The reasons known to this version.
const (
	ReasonDecode     Reason = "decode"             // the bytes are not what the decoder expects
	ReasonKeyMissing Reason = "key_missing"        // the idempotency key is missing, null or empty
	ReasonKeyInvalid Reason = "key_invalid"        // the idempotency key is no key of the declared kind
	ReasonKeyReuse   Reason = "key_reuse"          // the key was used before for another payload
	ReasonTombstone  Reason = "tombstone"          // a tombstone where a value is needed
	ReasonValueType  Reason = "value_type"         // a value that has no meaning in its column's type
	ReasonValueRange Reason = "value_range"        // a value outside its column's range, or that would be rounded
	ReasonNotNull    Reason = "not_null"           // a missing or null value where one is needed
	ReasonUnique     Reason = "unique"             // a unique constraint of the user's table
	ReasonForeignKey Reason = "foreign_key"        // a foreign key of the user's table
	ReasonCheck      Reason = "check"              // a check constraint of the user's table
	ReasonHandler    Reason = "handler"            // the handler's own refusal
	ReasonTooLarge   Reason = "too_large"          // larger than a limit
	ReasonParked     Reason = "parked"             // behind a dead letter of the same record key
	ReasonFunds      Reason = "insufficient_funds" // a balance that must not become negative
)

// Fault says that a message cannot be handled, whatever is done again: it is
// the message's own. Everything that is not the message's own (a database that
// is down, a table that is missing) must not be reported as a Fault.
type Fault struct {
	// Reason is the code.
	Reason Reason
	// Record is the record at fault; nil lets the engine find it by isolation.
	Record *Record
	// Field is the path of the field in the body, Column the column of the
	// target; empty where they do not apply.
	Field, Column string
	// Err says what is wrong, in words.
	Err error
	// Dependent says that another message may be the cause, by what it has done
	// before: the engine then judges this one when it is known what stays. What is
	// wrong with a value is not dependent; reasons such as insufficient_funds and
	// handler always count as it. Defaults to false.
	Dependent bool
}

// Faultf returns a Fault of r; r may be nil. The format takes %w.
func Faultf(r *Record, reason Reason, format string, args ...any) *Fault {
	return &Fault{Reason: reason, Record: r, Err: fmt.Errorf(format, args...)}
}

// Error names the record, the reason, the field and the column.
func (f *Fault) Error() string {
	var b strings.Builder
	if f.Record != nil {
		b.WriteString(f.Record.Position())
		b.WriteString(": ")
	}
	b.WriteString(string(f.Reason))
	if f.Field != "" {
		fmt.Fprintf(&b, ": field %s", f.Field)
	}
	if f.Column != "" {
		fmt.Fprintf(&b, ": column %s", f.Column)
	}
	if f.Err != nil {
		b.WriteString(": ")
		b.WriteString(f.Err.Error())
	}
	return b.String()
}

// Unwrap returns Err.
func (f *Fault) Unwrap() error { return f.Err }

// Permanent reports true: trying again cannot help. User code can give its own
// errors the same method to the same effect.
func (f *Fault) Permanent() bool { return true }

// AsFault returns the Fault within err for record r. An error that is no Fault
// becomes one with the given reason. A Fault that names no record is given r.
func AsFault(err error, r *Record, reason Reason) *Fault {
	f, ok := errors.AsType[*Fault](err)
	if !ok {
		return &Fault{Reason: reason, Record: r, Err: err}
	}
	if f.Record == nil {
		g := *f
		g.Record = r
		return &g
	}
	return f
}
