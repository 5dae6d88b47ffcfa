package pgproxy_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// A proxy that is moved leads new connections to the other server and leaves the
// open ones where they are; a server that cannot be one is refused.
func TestMove(t *testing.T) {
	proxy, _ := behind(t)
	old := connect(t, proxy)
	other := tablestest.Server(t)
	noErr(t, proxy.Move(other.URL("")))
	port := func(conn *pgx.Conn) (port int) {
		t.Helper()
		noErr(t, conn.QueryRow(t.Context(), `select inet_server_port()`).Scan(&port))
		return port
	}
	if was, is := port(old), port(connect(t, proxy)); was == other.Port() || is != other.Port() {
		t.Errorf("the open connection is to port %d, the new one to %d; the other server has %d", was, is, other.Port())
	}
	for _, wrong := range []string{"host=/tmp", "postgres://[::1"} {
		if proxy.Move(wrong) == nil {
			t.Errorf("moved to %q", wrong)
		}
	}
}
