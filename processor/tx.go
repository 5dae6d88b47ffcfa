package processor

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ownedTx is the batch's transaction as user code sees it: everything but its
// end.
type ownedTx struct{ pgx.Tx }

// Commit answers ErrTxOwned.
func (ownedTx) Commit(context.Context) error { return ErrTxOwned }

// Rollback answers ErrTxOwned.
func (ownedTx) Rollback(context.Context) error { return ErrTxOwned }

// commitOutcome says what an error of COMMIT means. COMMIT has three outcomes:
// nil is committed; an error that the server has sent as its answer is aborted,
// and is returned as it is; everything else is unknown, and comes back as a
// *commitUnknownError.
//
// An answer of severity FATAL or PANIC is no answer to COMMIT: the server ended
// the session, and may have done so after the commit was already durable (while
// it waited for a synchronous standby, PostgreSQL manual section 27.2.8, or on
// a shutdown). 40003 says itself that the completion is unknown. Do not ask
// pgconn.SafeToRetry here: it speaks of what was sent, not of what was done.
func commitOutcome(err error) error {
	if err == nil || errors.Is(err, pgx.ErrTxCommitRollback) {
		return err
	}
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok && answer.SeverityUnlocalized == "ERROR" && answer.Code != "40003" {
		return err
	}
	return &commitUnknownError{err}
}
