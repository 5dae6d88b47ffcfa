//go:build !unix

package embedded

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"
)

// errUnix is why the package compiles elsewhere and does nothing: the program
// that imports it does more than run a server.
var errUnix = errors.New("a server of one's own needs a Unix system: use a PostgreSQL that runs")

const (
	pauseSignal  = noSignal(0)
	resumeSignal = noSignal(1)
)

type noSignal int

func (noSignal) Signal()        {}
func (noSignal) String() string { return "none" }

type account struct{ name string }

func serverAccount() (account, error) { return account{}, errUnix }

func makeFolder(account) (string, error) { return "", errUnix }

func (account) reaches(string) bool { return true }

func (account) own(string) error { return errUnix }

func (account) command(ctx context.Context, _, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, name, args...)
}

type process struct{}

func startProcess(account, []string, string, string, []string) (*process, error) { return nil, errUnix }

func (*process) waitExit(time.Time) bool              { return true }
func (*process) reap() error                          { return errUnix }
func (*process) stop(context.Context, StopMode) error { return errUnix }
func (*process) kill() error                          { return errUnix }
func (*process) signalAll(os.Signal) error            { return errUnix }
func (s *Server) releaseMemory()                      {}
