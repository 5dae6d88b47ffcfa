package processor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errCut is what a client sees of a connection that was cut.
var errCut = fmt.Errorf("cut on purpose: %w", syscall.ECONNRESET)

// install makes every connection that config opens subject to the cuts. It is
// told of connections that are encrypted already, and so sees what is sent.
func (c *cutter) install(config *pgx.ConnConfig) {
	inner := config.AfterNetConnect
	config.AfterNetConnect = func(ctx context.Context, config *pgconn.Config, conn net.Conn) (net.Conn, error) {
		if inner != nil {
			var err error
			if conn, err = inner(ctx, config, conn); err != nil {
				return nil, err
			}
		}
		return &cutConn{Conn: conn, cutter: c}, nil
	}
}

// cutConn is the client's end of a connection to PostgreSQL. It counts what is
// sent from BEGIN on.
type cutConn struct {
	net.Conn
	cutter *cutter
	sends  int         // of the transaction, 0 outside of one
	drop   atomic.Bool // the next answer; a COPY reads while it writes
	gone   atomic.Bool
}

// Write sends b, or is where the connection is cut.
func (c *cutConn) Write(b []byte) (int, error) {
	switch {
	case c.gone.Load():
		return 0, errCut
	case isQuery(b, "begin"):
		c.sends = 1
	case c.sends > 0:
		c.sends++
	default:
		return c.Conn.Write(b)
	}
	n, commit := c.sends, isQuery(b, "commit")
	if commit || isQuery(b, "rollback") {
		c.sends = 0
	}
	place, cut := c.cutter.strike(n, commit)
	switch {
	case !cut:
		return c.Conn.Write(b)
	case place == cutBefore:
		return 0, c.cut(nil)
	case place == cutInside:
		written, err := c.Conn.Write(b[:len(b)/2])
		return written, c.cut(err)
	case place == cutAnswered:
		c.drop.Store(true)
		return c.Conn.Write(b)
	}
	written, err := c.Conn.Write(b)
	return written, c.cut(err)
}

// Read returns what the server answers, unless that is not to be seen.
func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.drop.Load() {
		return n, err
	}
	return 0, c.cut(err)
}

// cut ends the connection. What the client sends on it afterwards, to take leave,
// is no step of a transaction, and may come when the next one has begun.
func (c *cutConn) cut(err error) error {
	c.gone.Store(true)
	return errors.Join(errCut, err, c.Close())
}

// isQuery reports whether the bytes are a message that executes a statement, in
// the form that BEGIN and COMMIT have: 'Q', a length, and the text up to a zero.
func isQuery(b []byte, sql string) bool {
	if len(b) < 6 || b[0] != 'Q' {
		return false
	}
	text, _, _ := bytes.Cut(b[5:], []byte{0})
	return bytes.EqualFold(text, []byte(sql))
}
