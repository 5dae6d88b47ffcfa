package processortest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

// errCut is what a client sees of a connection that a fault has cut.
var errCut = errors.New("processortest: the connection was cut at a commit")

// faultyConn is the client's end of a connection to PostgreSQL. It reads along
// what the client sends and strikes at COMMIT.
type faultyConn struct {
	net.Conn
	faults *CommitFaults

	// Of the writing side only.
	started  bool            // the startup message, which has no type, has passed
	skip     int             // bytes of a message whose beginning has passed
	prepared map[string]bool // prepared statements that are a COMMIT
	bound    bool            // the portal about to be executed is a COMMIT

	answer atomic.Value   // the CommitFault that the next answer meets
	wake   chan time.Time // capacity 1: the latest deadline, for an answer that is held
}

func newFaultyConn(conn net.Conn, faults *CommitFaults) *faultyConn {
	c := &faultyConn{Conn: conn, faults: faults, prepared: map[string]bool{}, wake: make(chan time.Time, 1)}
	c.answer.Store(NoFault)
	return c
}

// Write forwards b, up to the fault of a COMMIT within it.
func (c *faultyConn) Write(b []byte) (int, error) {
	at, size := c.findCommit(b)
	if at < 0 {
		return c.Conn.Write(b)
	}
	switch fault := c.faults.next(); fault {
	case CutBefore:
		return c.cut(b[:at])
	case CutInside:
		return c.cut(b[:at+size/2])
	default:
		c.answer.Store(fault)
		return c.Conn.Write(b)
	}
}

// cut forwards what comes before the fault and breaks the connection.
func (c *faultyConn) cut(before []byte) (int, error) {
	n, err := c.Conn.Write(before)
	return n, errors.Join(errCut, err, c.Close())
}

// Read returns what the server answers, unless the answer's fate is another. It
// strikes here and not in Write: only what comes back proves that the server
// has done the COMMIT.
func (c *faultyConn) Read(b []byte) (int, error) {
	switch c.answer.Swap(NoFault) {
	case CutAfter:
		return 0, errors.Join(errCut, c.drain(), c.Close())
	case HoldAnswer:
		c.wait()
	}
	return c.Conn.Read(b)
}

// drain reads until the server is ready for the next statement, out of a
// transaction. Bytes alone would not do: answers to statements that were sent
// together with the COMMIT come before it is done.
func (c *faultyConn) drain() error {
	ready := []byte{'Z', 0, 0, 0, 5, 'I'}
	var got []byte
	for b := make([]byte, 4096); !bytes.HasSuffix(got, ready); {
		n, err := c.Conn.Read(b)
		if got = append(got, b[:n]...); err != nil {
			return err
		}
	}
	return nil
}

// wait holds the answer, at most until the deadline that the client sets.
func (c *faultyConn) wait() {
	end := time.Now().Add(c.faults.hold)
	for {
		hold := time.NewTimer(time.Until(end))
		select {
		case <-hold.C:
			return
		case deadline := <-c.wake:
			hold.Stop()
			if deadline.Before(end) {
				end = deadline
			}
		}
	}
}

// SetDeadline passes the deadline on, to a held answer too: a client that loses
// its patience does so by setting a deadline.
func (c *faultyConn) SetDeadline(t time.Time) error {
	err := c.Conn.SetDeadline(t)
	if !t.IsZero() {
		c.wakeAt(t)
	}
	return err
}

// Close lets go of a held answer.
func (c *faultyConn) Close() error {
	c.wakeAt(time.Now())
	return c.Conn.Close()
}

func (c *faultyConn) wakeAt(t time.Time) {
	select {
	case <-c.wake: // an older deadline that nobody waited for
	default:
	}
	select {
	case c.wake <- t:
	default:
	}
}

// findCommit returns where the message that executes a COMMIT begins in b and
// its size, and -1 where there is none. It follows the frontend messages of the
// protocol's version 3: a type, a length that counts itself, a body.
func (c *faultyConn) findCommit(b []byte) (at, size int) {
	if !c.started {
		c.started = true
		return -1, 0
	}
	at = min(c.skip, len(b))
	c.skip -= at
	for len(b)-at >= 5 {
		size = 1 + int(binary.BigEndian.Uint32(b[at+1:]))
		body := b[at+5 : min(at+size, len(b))]
		if c.commits(b[at], body) {
			return at, size
		}
		if at+size > len(b) {
			c.skip = at + size - len(b)
			return -1, 0
		}
		at += size
	}
	return -1, 0
}

// commits reports whether a message makes the server commit: a simple query, or
// an Execute of a portal that a Bind made from a prepared COMMIT.
func (c *faultyConn) commits(kind byte, body []byte) bool {
	switch kind {
	case 'Q': // text
		text, _, _ := bytes.Cut(body, []byte{0})
		return isCommit(text)
	case 'P': // name, text, …
		name, rest, _ := bytes.Cut(body, []byte{0})
		text, _, _ := bytes.Cut(rest, []byte{0})
		c.prepared[string(name)] = isCommit(text)
	case 'B': // portal, name of the statement, …
		_, rest, _ := bytes.Cut(body, []byte{0})
		name, _, _ := bytes.Cut(rest, []byte{0})
		c.bound = c.prepared[string(name)]
	case 'E':
		return c.bound
	}
	return false
}

func isCommit(sql []byte) bool {
	return strings.EqualFold(strings.Trim(string(sql), " \t\r\n;"), "commit")
}
