package processor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

func state(code string) error { return &pgconn.PgError{Code: code, Severity: "ERROR"} }

// Proves what each kind of error is taken for, by its type and its SQLSTATE and
// however it is wrapped: an outage never blames a message (case E07), and a
// message's fault is never tried for ever.
func TestClassify(t *testing.T) {
	tests := map[class][]error{
		outage: {
			state("40001"), state("40P01"), state("53300"), state("53100"), state("55P03"), state("57P01"), state("57P03"), state("57014"),
			state("08006"), state("28P01"), state("3D000"), state("25006"), state("25P03"), state("58030"), io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed, context.DeadlineExceeded,
			&net.OpError{Op: "dial", Err: errors.New("refused")}, offsets.ErrKeyVanished, offsets.ErrKeyContested,
			schema.Unavailable(state("42P01")), schema.Unavailable(errors.New("no table")),
		},
		ownFault: {
			state("22003"), state("22P02"), state("23505"), state("23502"), state("42601"), state("54001"), state("21000"),
			schema.Faultf(nil, schema.ReasonHandler, "no"),
		},
		systemic:      {state("42P01"), state("42501"), state("42703"), state("42P10"), state("3F000"), state("42804")},
		uncertain:     {errors.New("the moon"), state("P0001"), state("XX000")},
		superseded:    {offsets.ErrFenced, offsets.ErrWentBack},
		unknownCommit: {&commitUnknownError{io.EOF}, &commitUnknownError{state("57P01")}},
	}
	for want, errs := range tests {
		for _, err := range errs {
			if got := classify(fmt.Errorf("apply: %w", err)); got != want {
				t.Errorf("%v (%T): class %d, want %d", err, err, got, want)
			}
		}
	}
}

// Proves which answers to COMMIT are taken for an abort. That the
// outcomes are true of a server is shown by TestCommitAnswerLost.
func TestCommitOutcomes(t *testing.T) {
	tests := []struct {
		err     error
		unknown bool
	}{
		{nil, false},
		{pgx.ErrTxCommitRollback, false},
		{&pgconn.PgError{Code: "23503", SeverityUnlocalized: "ERROR"}, false},
		{&pgconn.PgError{Code: "40001", SeverityUnlocalized: "ERROR"}, false},
		{&pgconn.PgError{Code: "40003", SeverityUnlocalized: "ERROR"}, true},
		{&pgconn.PgError{Code: "57P01", SeverityUnlocalized: "FATAL"}, true},
		{&pgconn.PgError{Code: "XX000", SeverityUnlocalized: "PANIC"}, true},
		{io.ErrUnexpectedEOF, true},
		{context.DeadlineExceeded, true},
	}
	for _, tt := range tests {
		err := commitOutcome(tt.err)
		if got := errors.As(err, new(*commitUnknownError)); got != tt.unknown || !errors.Is(err, tt.err) {
			t.Errorf("%v: %v, unknown %t, want %t", tt.err, err, got, tt.unknown)
		}
	}
}
