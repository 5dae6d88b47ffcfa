package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// errNoRoom answers to Fill and Free of a server whose disk is everybody's.
var errNoRoom = errors.New("the server's data is on the disk of the machine: start it with Options.Room")

// RoomProblem returns why no server can have Options.Room here, nil where one can:
// it takes Linux, and the right to mount.
func RoomProblem() error {
	dir, err := os.MkdirTemp("", "oncestream-room-")
	if err != nil {
		return err
	}
	err = mountRoom(account{}, dir, 1<<20)
	if err == nil {
		err = unmountRoom(dir)
	}
	return errors.Join(err, os.Remove(dir))
}

// makeRoom mounts the server's own disk, if it is to have one.
func (s *Server) makeRoom() error {
	if s.room == 0 {
		return nil
	}
	if err := s.account.makeFolder(s.disk()); err != nil {
		return err
	}
	if err := mountRoom(s.account, s.disk(), s.room); err != nil {
		return fmt.Errorf("a disk of %d bytes for the data (Options.Room): %w", s.room, err)
	}
	return nil
}

// Fill leaves not a byte on the server's disk: its next new page or log file finds
// no space. The server must run with Options.Room.
func (s *Server) Fill() error {
	return s.resize("fill", func() error { return fillRoom(s.disk()) })
}

// Free makes the room of Options.Room again. A server that could not go on without
// space has ended, and wants [Server.Restart].
func (s *Server) Free() error {
	return s.resize("free", func() error { return resizeRoom(s.disk(), s.room) })
}

func (s *Server) resize(verb string, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errNoRoom
	if s.room > 0 {
		err = do()
	}
	if err != nil {
		return fmt.Errorf("embedded: %s the disk of postgres: %w", verb, err)
	}
	return nil
}

// remove removes the server's folder, with its disk.
func (s *Server) remove() error {
	var err error
	if _, statErr := os.Stat(s.disk()); s.room > 0 && statErr == nil {
		err = unmountRoom(s.disk())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *Server) disk() string { return filepath.Join(s.dir, "disk") }
