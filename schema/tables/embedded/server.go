package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options says how a server is found and run. The zero Options is ready to use.
type Options struct {
	// BinDir is the folder of initdb and postgres. Defaults to the first of PATH,
	// the folders where distributions put them (newest version first), and a
	// download.
	BinDir string
	// Download takes the downloaded binaries although others are installed. BinDir
	// wins over it. Defaults to false.
	Download bool
	// CacheDir is the folder that keeps downloaded binaries. Defaults to
	// "oncestream" in the user's cache folder; for root, whose own folders the
	// server's account cannot enter, to /var/cache/oncestream.
	CacheDir string
	// Mirror is the URL of the Maven repository to download from, without a slash
	// at its end. Defaults to Maven Central.
	Mirror string
	// Settings are server settings, by name, over the defaults of this package
	// (see the package comment). The names port, listen_addresses and
	// unix_socket_directories are the package's own and are refused.
	Settings map[string]string
	// Archive keeps the server's write-ahead log in its folder, so that Restore
	// can bring it back to an earlier moment. Defaults to false.
	Archive bool
	// Room puts the data, the write-ahead log with it, on a disk of its own of so
	// many bytes, in memory, which [Server.Fill] makes full; see [RoomProblem]. What
	// is not used takes no memory. Defaults to 0, the disk of the temporary folder.
	Room int64
	// Environment is added to the environment of the server's processes, each
	// "NAME=value". Defaults to nothing.
	Environment []string
}

// Server is a PostgreSQL server of one's own. Its methods are safe for
// concurrent use, one at a time.
type Server struct {
	bin      string
	dir      string
	account  account
	settings map[string]string
	room     int64    // of a disk of its own; 0: it has none
	env      []string // beyond the account's

	mu   sync.Mutex
	port int
	proc *process // nil while stopped
}

// The server's only user, and the database that is always there.
const (
	superuser = "postgres"
	database  = "postgres"
)

// How long a server may take to start (crash recovery included) and to stop
// where the caller's context sets no limit of its own.
const (
	startLimit = time.Minute
	stopLimit  = 20 * time.Second
)

// Start finds or fetches the binaries, makes a data folder and starts a server
// on a free port. The caller must Close it. The error holds the server's own
// words where it did not start.
func Start(ctx context.Context, o Options) (*Server, error) {
	s, err := start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("embedded: start postgres: %w", err)
	}
	return s, nil
}

func start(ctx context.Context, o Options) (*Server, error) {
	settings, err := mergeSettings(o.Settings)
	if err != nil {
		return nil, err
	}
	who, err := serverAccount()
	if err != nil {
		return nil, err
	}
	bin, err := binaries(ctx, o, who)
	if err != nil {
		return nil, err
	}
	dir, err := makeFolder(who)
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, account: who, settings: settings, room: o.Room, env: o.Environment}
	if err := s.begin(ctx, o.Archive); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// begin makes the data and starts the server on it.
func (s *Server) begin(ctx context.Context, archive bool) error {
	if err := s.makeRoom(); err != nil {
		return err
	}
	if archive {
		if err := s.archiveLog(); err != nil {
			return err
		}
	}
	if err := s.initialise(ctx); err != nil {
		return err
	}
	return s.runOnFreePort(ctx)
}

func mergeSettings(own map[string]string) (map[string]string, error) {
	settings := map[string]string{
		"fsync":           "off",
		"log_timezone":    "UTC",
		"max_connections": "200",
		"shared_buffers":  "64MB",
		"timezone":        "UTC",
	}
	for _, name := range []string{"port", "listen_addresses", "unix_socket_directories"} {
		if _, ok := own[name]; ok {
			return nil, fmt.Errorf("setting %s cannot be given: the server's address is chosen for it", name)
		}
	}
	maps.Copy(settings, own)
	return settings, nil
}

func (s *Server) initialise(ctx context.Context) error {
	cmd := s.account.command(ctx, s.dir, filepath.Join(s.bin, "initdb"),
		"--pgdata", s.data(), "--username", superuser, "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// runOnFreePort tries again on another port where somebody took the one that
// was just found free.
func (s *Server) runOnFreePort(ctx context.Context) error {
	var err error
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.run(ctx); err == nil || ctx.Err() != nil || !portTaken(s.port) {
			return err
		}
	}
	return err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func portTaken(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return true
	}
	return l.Close() != nil
}

// run starts the process and returns when it answers.
func (s *Server) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p, err := startProcess(s.account, s.env, s.dir, s.logFile(), s.arguments())
	if err != nil {
		return err
	}
	for {
		err := s.ping(ctx)
		if err == nil {
			s.proc = p
			return nil
		}
		if p.waitExit(time.Now().Add(20 * time.Millisecond)) {
			return fmt.Errorf("postgres ended: %w\n%s", p.reap(), s.LogTail(20))
		}
		if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("postgres does not answer: %w\n%s", err, s.LogTail(20)), p.kill())
		}
	}
}

func (s *Server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url(database))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func (s *Server) arguments() []string {
	args := []string{
		filepath.Join(s.bin, "postgres"), "-D", s.data(),
		"-c", "port=" + strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=" + s.socketDir(),
	}
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		args = append(args, "-c", name+"="+s.settings[name])
	}
	return args
}

// socketDir is empty, which means no socket, where the folder's name is too
// long for the address of one.
func (s *Server) socketDir() string {
	const longest = 103 // of macOS; Linux takes 107
	if len(filepath.Join(s.dir, ".s.PGSQL.65535")) > longest {
		return ""
	}
	return s.dir
}

func (s *Server) data() string {
	if s.room > 0 {
		return filepath.Join(s.disk(), "data")
	}
	return filepath.Join(s.dir, "data")
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }
