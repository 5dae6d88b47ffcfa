package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/processor/processortest/check"
	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
)

// worker is a process of the program under test, with a link to the database of
// its own. It is started again when it was killed; each life has a log.
type worker struct {
	name, file string
	number     int // from 0 on
	folder     string
	program    []string
	env        []string
	proxy      *pgproxy.Proxy
	wire       pgproxy.Rule // what passes when no fault strikes

	mu      sync.Mutex
	process *processortest.Process
	lives   int
	// awaited says that the end of this life is somebody's doing.
	awaited bool
	ends    []check.Exit
	commits []check.Commit // that the proxy has struck
	watch   sync.WaitGroup
}

func newWorker(n int, o Options, k *kafka, server string) (*worker, error) {
	proxy, err := pgproxy.Listen(server)
	if err != nil {
		return nil, err
	}
	w := &worker{number: n - 1, name: fmt.Sprintf("worker-%d", n), folder: o.Folder, program: o.Program, env: o.Environment, proxy: proxy, wire: o.Wire}
	w.strike(nil)
	w.file = filepath.Join(o.Folder, w.name+".yaml")
	quoted := `"` + strings.Join(k.addrsFor(w.number), `", "`) + `"`
	return w, os.WriteFile(w.file, []byte(pipelineFile(quoted, proxy.URL())), 0o600)
}

// start starts the process, if it does not run.
func (w *worker) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process != nil {
		return nil
	}
	w.lives++
	log, err := os.Create(w.log(w.lives))
	if err != nil {
		return err
	}
	defer log.Close()
	args := slices.Concat(w.program[1:], []string{"run", w.file, "--log-format=json", "--log-level=info"})
	cmd := exec.Command(w.program[0], args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = w.env, log, log
	p, err := processortest.StartCommand(cmd)
	if err != nil {
		return err
	}
	w.process, w.awaited = p, false
	// Ends with the process, and close waits for it.
	w.watch.Go(func() {
		<-p.Ended()
		w.ended(p)
	})
	return nil
}

// log is the log of a life.
func (w *worker) log(life int) string {
	return filepath.Join(w.folder, fmt.Sprintf("%s.%d.log", w.name, life))
}

func (w *worker) ended(p *processortest.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, check.Exit{Worker: w.name, Life: w.lives, At: time.Now(), Code: p.ExitCode(), Awaited: w.awaited})
	w.process = nil
}

// running returns the process, nil where there is none, and notes that its end is
// awaited where the caller is to end it.
func (w *worker) running(toEnd bool) *processortest.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process != nil && toEnd {
		w.awaited = true
	}
	return w.process
}

// strike sets the rule of a fault; nil ends it.
func (w *worker) strike(fault pgproxy.Rule) {
	if fault == nil || w.wire == nil {
		if fault == nil {
			fault = w.wire
		}
		w.proxy.SetRule(fault)
		return
	}
	w.proxy.SetRule(func(m pgproxy.Message) pgproxy.Action {
		if a := fault(m); a.Cut != pgproxy.CutNowhere || a.Hold > 0 || a.Do != nil {
			return a
		}
		return w.wire(m)
	})
}

// kill ends the process by SIGKILL and returns whether there was one.
func (w *worker) kill() bool {
	p := w.running(true)
	if p == nil {
		return false
	}
	p.Kill()
	return true
}

// dump ends a process that hangs, and returns the end of what it has said: where
// its goroutines stood.
func (w *worker) dump(ctx context.Context, p *processortest.Process) string {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := p.Dump()
	if err == nil {
		_, err = p.Wait(limited)
	}
	w.mu.Lock()
	log := w.log(w.lives)
	w.mu.Unlock()
	said, readErr := os.ReadFile(log)
	if err = errors.Join(err, readErr); err != nil {
		return err.Error()
	}
	return string(said[max(0, len(said)-dumped):])
}

// dumped is how much of a log is shown, in bytes.
const dumped = 60_000

// struck notes a COMMIT that the proxy has struck.
func (w *worker) struck() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits = append(w.commits, check.Commit{Worker: w.name, Life: w.lives, At: time.Now()})
}

// close ends the process, waits until that was noted, and takes the link down.
func (w *worker) close() error {
	w.kill()
	w.watch.Wait()
	return w.proxy.Close()
}
