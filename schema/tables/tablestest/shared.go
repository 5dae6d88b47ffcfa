package tablestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// EnvDatabaseURL names the environment's variable that holds the connection
// string, URL or keywords, of the server to test on. The role must be allowed to
// create schemas. Defaults to an embedded server.
const EnvDatabaseURL = "ONCESTREAM_TEST_DATABASE_URL"

// shared is the test program's server. It is the one package variable there is:
// tests have no common owner who could hold the server for them (TestMain is
// not passed to them), and a server a test would cost a second each.
var shared sharedServer

type sharedServer struct {
	mu     sync.Mutex
	server *embedded.Server
	err    error
}

// url starts the server at the first call. A start that failed is not tried
// again, lest each test waits for the same answer.
func (s *sharedServer) url(ctx context.Context) (string, error) {
	if url := os.Getenv(EnvDatabaseURL); url != "" {
		return url, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil && s.err == nil {
		s.server, s.err = embedded.Start(ctx, embedded.Options{})
	}
	if s.err != nil {
		return "", fmt.Errorf("%w (or set %s)", s.err, EnvDatabaseURL)
	}
	return s.server.URL(""), nil
}

func (s *sharedServer) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	err := s.server.Close()
	s.server, s.err = nil, errors.Join(errors.New("the shared server was closed at the end of the tests"), err)
	return err
}

// Main is for a package's TestMain: it runs the tests, ends the shared server
// and exits.
func Main(m *testing.M) {
	os.Exit(Runner{M: m}.Run())
}

// Runner runs the tests of M and then ends the shared server. It is Main for a
// TestMain that has more to do, such as
// goleak.VerifyTestMain(tablestest.Runner{M: m}).
type Runner struct {
	// M is what the TestMain was passed.
	M interface{ Run() int }
}

// Run returns the exit code; it is 1 where the tests passed and the server did
// not end.
func (r Runner) Run() int {
	code := r.M.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "tablestest:", err)
		code = max(code, 1)
	}
	return code
}

// Server starts a server of the test's own, which may be stopped, paused and
// killed. It ends with the test. change changes its options.
func Server(tb testing.TB, change ...func(*embedded.Options)) *embedded.Server {
	tb.Helper()
	var o embedded.Options
	for _, f := range change {
		f(&o)
	}
	s, err := embedded.Start(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}
