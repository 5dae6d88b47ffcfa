package processor

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// connectionFault reports whether err is the connection's and not the
// statement's. It is asked of errors without a SQLSTATE only.
func connectionFault(err error) bool {
	var network net.Error
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &network), errors.As(err, &connect),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, pgconn.ErrConnClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.Is(err, puddle.ErrClosedPool):
		return true
	}
	return pgconn.SafeToRetry(err)
}
