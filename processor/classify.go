package processor

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// class is what to do about an error of a batch.
type class int

const (
	// outage: the server, the connection or a lock; try again for ever.
	outage class = iota + 1
	// uncertain: of unknown kind; try again a few times, then halt.
	uncertain
	// ownFault: of one message; find it.
	ownFault
	// systemic: of the set-up (a table is missing, a permission is); halt.
	systemic
	// superseded: the claim is not ours any more; claim again.
	superseded
	// unknownCommit: COMMIT had no answer; resolve it.
	unknownCommit
)

// classify reads an error by its type and its SQLSTATE (PostgreSQL manual,
// appendix A), never by its text.
func classify(err error) class {
	switch {
	case errors.Is(err, offsets.ErrFenced), errors.Is(err, offsets.ErrWentBack):
		return superseded
	case errors.As(err, new(*commitUnknownError)):
		return unknownCommit
	case errors.Is(err, offsets.ErrKeyVanished), errors.Is(err, offsets.ErrKeyContested), schema.IsUnavailable(err):
		return outage
	case permanent(err):
		return ownFault
	}
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classifyState(server.Code)
	}
	if connectionFault(err) {
		return outage
	}
	return uncertain
}

// permanent reports whether the error itself says that trying again is useless.
func permanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

// setUp holds the states of class 42 (and 3F) that say something of the set-up
// and nothing of a message.
var setUp = map[string]bool{
	"42P01": true, // undefined_table
	"42501": true, // insufficient_privilege
	"42703": true, // undefined_column
	"42883": true, // undefined_function
	"42704": true, // undefined_object
	"42P10": true, // invalid_column_reference: no unique index for ON CONFLICT
	"3F000": true, // invalid_schema_name
	"42804": true, // datatype_mismatch: a column has another type now
	"42846": true, // cannot_coerce
	"428C9": true, // generated_always
	"0A000": true, // feature_not_supported, such as a plan whose result type changed
}

func classifyState(state string) class {
	if setUp[state] {
		return systemic
	}
	switch state {
	case readOnlyTransaction, // a standby; the writer will be back, see elsewhere
		"25P03": // idle_in_transaction_session_timeout: we were stopped for a while
		return outage
	}
	switch state[:2] {
	// 28 and 3D: a password that is being changed, a database that is being
	// restored. At a start they are final, see refused.
	case "08", "28", "3D", "40", "53", "55", "57", "58":
		return outage
	case "21", // cardinality_violation: two keys that only the database finds equal
		"22", "23", "42",
		"54": // program_limit_exceeded: a value nested or wide beyond what the server takes
		return ownFault
	}
	return uncertain
}

// reasons names the states of class 23 (integrity constraint violation).
var reasons = map[string]schema.Reason{
	"23502": schema.ReasonNotNull,
	"23503": schema.ReasonForeignKey,
	"23505": schema.ReasonUnique,
	"23514": schema.ReasonCheck,
}

// faultOf makes an own fault of an error that classify has called one.
func faultOf(err error, r *schema.Record) *schema.Fault {
	reason := schema.ReasonHandler
	var column string
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		column = server.ColumnName
		switch known, ok := reasons[server.Code]; {
		case ok:
			reason = known
		case server.Code[:2] == "22":
			reason = schema.ReasonValueRange
		}
	}
	f := schema.AsFault(err, r, reason)
	if f.Column == "" {
		f.Column = column
	}
	return f
}

// newBackOff returns the pauses between attempts: jittered and growing.
func (r Retry) newBackOff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = r.Initial, r.Max
	b.RandomizationFactor = 0.5
	b.Reset()
	return b
}

// fencedPause is the least time between losing a partition and claiming it
// again, so that two workers that both believe in their assignment do not take
// it from each other all the time.
const fencedPause = time.Second
