package pgproxy

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// session is one connection of a client and its counterpart at the server.
type session struct {
	proxy  *Proxy
	number int
	target string
	pid    atomic.Uint32
	client net.Conn
	// ended is done when the connection is cut; a held message need not wait.
	ended context.Context
	end   context.CancelFunc

	mu     sync.Mutex
	server net.Conn
}

func newSession(p *Proxy, number int, client net.Conn, target string) *session {
	ended, end := context.WithCancel(context.Background())
	return &session{proxy: p, number: number, target: target, client: client, ended: ended, end: end}
}

// The requests that a client sends instead of a startup message.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

// run forwards until an end closes its side or the connection is cut.
func (s *session) run() {
	defer s.end()
	defer s.client.Close()
	from := bufio.NewReader(s.client)
	first, err := s.startup(from)
	if err != nil {
		return
	}
	server, err := (&net.Dialer{}).DialContext(s.ended, "tcp", s.target)
	if err != nil {
		return
	}
	defer server.Close()
	s.mu.Lock()
	s.server = server
	s.mu.Unlock()
	if s.ended.Err() != nil {
		return
	}
	if _, err := server.Write(first); err != nil {
		return
	}
	var answers sync.WaitGroup
	answers.Go(func() {
		s.pump(bufio.NewReader(server), s.client, nil)
		_ = s.client.Close()
	})
	s.pump(from, server, newStatements())
	_ = server.Close()
	answers.Wait()
}

// startup returns the client's first message, having declined encryption.
func (s *session) startup(from io.Reader) ([]byte, error) {
	for {
		first, err := readStartup(from)
		if err != nil {
			return nil, err
		}
		if len(first) < 8 {
			return nil, errNoProtocol
		}
		if code := binary.BigEndian.Uint32(first[4:]); code != sslRequest && code != gssRequest {
			return first, nil
		}
		if _, err := s.client.Write([]byte{'N'}); err != nil {
			return nil, err
		}
	}
}

// pump forwards one direction, message by message. The client's has statements.
func (s *session) pump(from *bufio.Reader, to net.Conn, known *statements) {
	for {
		raw, err := readMessage(from)
		if err != nil {
			return
		}
		m := s.describe(raw, known)
		action, link := s.proxy.decide(m)
		if err := s.act(action, link, raw, to); err != nil {
			return
		}
	}
}

// describe says what a message is.
func (s *session) describe(raw []byte, known *statements) Message {
	m := Message{Session: s.number, ToServer: known != nil, Kind: raw[0]}
	body := raw[5:]
	switch {
	case known != nil:
		m.SQL = known.sql(m.Kind, body)
	case m.Kind == 'C':
		m.Tag, _ = cutText(body)
	case m.Kind == 'Z' && len(body) > 0:
		m.Status = body[0]
	case m.Kind == 'K' && len(body) >= 4:
		s.pid.Store(binary.BigEndian.Uint32(body))
	}
	m.PID = s.pid.Load()
	return m
}

// act does with a message what was decided.
func (s *session) act(a Action, link Link, raw []byte, to net.Conn) error {
	if a.Do != nil {
		a.Do()
	}
	if err := s.wait(a.Hold + link.Latency); err != nil {
		return err
	}
	switch {
	case a.Instead != nil:
		raw = a.Instead
	case a.SQL != "" && (raw[0] == 'Q' || raw[0] == 'P'):
		raw = withSQL(raw, a.SQL)
	case a.Tag != "" && raw[0] == 'C':
		raw = withTag(a.Tag)
	}
	switch a.Cut {
	case CutBeforeMessage:
		raw = nil
	case CutInsideMessage:
		raw = raw[:len(raw)/2]
	case CutNowhere, CutAfterMessage:
	}
	err := s.send(to, raw, link.Slice)
	if a.Cut != CutNowhere {
		s.cut()
		return net.ErrClosed
	}
	return err
}

// wait waits, unless the connection is cut.
func (s *session) wait(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ended.Done():
		return s.ended.Err()
	}
}

func (s *session) send(to net.Conn, raw []byte, slice int) error {
	for len(raw) > 0 {
		n := len(raw)
		if slice > 0 {
			n = min(n, slice)
		}
		if _, err := to.Write(raw[:n]); err != nil {
			return err
		}
		raw = raw[n:]
	}
	return nil
}

// cut resets both sides.
func (s *session) cut() {
	s.proxy.mu.Lock()
	if s.ended.Err() == nil {
		s.proxy.cuts++
	}
	s.proxy.mu.Unlock()
	s.end()
	reset(s.client)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		reset(s.server)
	}
}
