//go:build unix

package embedded

import (
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A server with room of its own finds no space when it is filled, says so by its
// code, and goes on when there is room again; a standby has its own. Nothing of
// it is left.
func TestRoom(t *testing.T) {
	if err := RoomProblem(); err != nil {
		if _, err := Start(t.Context(), Options{Room: 1 << 30}); err == nil {
			t.Error("a server has room where none can be had")
		}
		return
	}
	s := newServer(t, Options{Room: 1 << 30, Environment: []string{"PGAPPNAME=whatever"}})
	exec1(t, connect(t, s), "create table t (x text)")
	if err := s.Fill(); err != nil {
		t.Fatal(err)
	}
	_, err := connect(t, s).Exec(t.Context(), "insert into t select repeat('x', 2000) from generate_series(1, 10000)")
	if failed, ok := errors.AsType[*pgconn.PgError](err); !ok || failed.Code != "53100" {
		t.Errorf("a full disk answers %v", err)
	}
	if err := s.Free(); err != nil {
		t.Fatal(err)
	}
	exec1(t, connect(t, s), "insert into t select repeat('x', 2000) from generate_series(1, 10000)")
	standby, err := s.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := standby.Fill(); err != nil {
		t.Error(err)
	}
	exec1(t, connect(t, s), "insert into t select repeat('x', 2000) from generate_series(1, 1000)")
	for _, server := range []*Server{standby, s} {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(server.dir); err == nil {
			t.Errorf("%s is left", server.dir)
		}
	}
}

// A server whose disk is everybody's cannot be filled.
func TestNoRoom(t *testing.T) {
	s := newServer(t, Options{})
	if err := errors.Join(s.Fill(), s.Free()); !errors.Is(err, errNoRoom) {
		t.Errorf("got %v", err)
	}
}
