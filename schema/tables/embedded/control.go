package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// StopMode says what a stop does to the sessions that are open.
type StopMode string

// The modes, named as pg_ctl names them.
const (
	StopSmart     StopMode = "smart"     // wait until the clients have gone
	StopFast      StopMode = "fast"      // roll back and disconnect them
	StopImmediate StopMode = "immediate" // drop everything; the next start recovers
)

// URL returns a connection string for the database; an empty name means the one
// that is always there. It stays valid over Stop, Kill and Restart.
func (s *Server) URL(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url(name)
}

func (s *Server) url(name string) string {
	if name == "" {
		name = database
	}
	u := url.URL{
		Scheme: "postgres", User: url.User(superuser), Path: "/" + name,
		Host: fmt.Sprintf("127.0.0.1:%d", s.port), RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Port returns the TCP port on the loopback address.
func (s *Server) Port() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.port
}

// Stop shuts the server down and returns when its process has ended, or when
// ctx ends; then the shutdown goes on and Stop may be called again. It does
// nothing to a server that does not run.
func (s *Server) Stop(ctx context.Context, mode StopMode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop(ctx, mode)
}

func (s *Server) stop(ctx context.Context, mode StopMode) error {
	if s.proc == nil {
		return nil
	}
	if err := s.proc.stop(ctx, mode); err != nil {
		return fmt.Errorf("embedded: stop postgres (%s): %w", mode, err)
	}
	s.proc = nil
	return nil
}

// Kill ends the server's processes, all of them, as a fall of the machine
// would: nothing is flushed and no client is told. It returns when they have
// ended. It does nothing to a server that does not run.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

func (s *Server) kill() error {
	if s.proc == nil {
		return nil
	}
	if err := s.proc.kill(); err != nil {
		return fmt.Errorf("embedded: kill postgres: %w", err)
	}
	s.proc = nil
	return nil
}

// Restart starts the server again on the same port and data and returns when it
// answers; a server that runs is first stopped, StopFast.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(ctx, StopFast); err != nil {
		return err
	}
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("embedded: restart postgres: %w", err)
	}
	return nil
}

// Pause stops all processes of the server in their tracks: it accepts
// connections (the kernel does) and never answers. Kill and Close work on a
// paused server.
func (s *Server) Pause() error {
	return s.signalAll("pause", pauseSignal)
}

// Resume lets a paused server go on.
func (s *Server) Resume() error {
	return s.signalAll("resume", resumeSignal)
}

func (s *Server) signalAll(verb string, sig os.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return fmt.Errorf("embedded: %s postgres: it does not run", verb)
	}
	if err := s.proc.signalAll(sig); err != nil {
		return fmt.Errorf("embedded: %s postgres: %w", verb, err)
	}
	return nil
}

// Close ends the server and removes its folder. A server that does not stop in
// time is killed.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(stopLimit))
	defer cancel()
	var err error
	if s.proc != nil && s.proc.stop(ctx, StopImmediate) != nil {
		err = s.proc.kill()
	}
	s.proc = nil
	s.releaseMemory()
	return errors.Join(err, s.remove())
}

// LogTail returns the last lines of the server's log, at most as many as given.
func (s *Server) LogTail(lines int) string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return ""
	}
	all := strings.SplitAfter(string(bytes.TrimRight(text, "\n")), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}
