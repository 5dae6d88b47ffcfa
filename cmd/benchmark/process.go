//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is what /proc says of a process. The times are in clock ticks, of which
// Linux has 100 a second for every program; children are those that have ended and
// were waited for.
type process struct {
	parent        int
	own, children int64
}

// tick is the unit of the times in /proc (proc_pid_stat(5): sysconf(_SC_CLK_TCK)).
const tick = 10 * time.Millisecond

func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, fmt.Errorf("read the times of process %d: %w", pid, err)
	}
	// The program's name, in brackets, may hold anything; after it come state,
	// parent and, as fields 14 to 17, the times.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var n [5]int64
	for i, place := range []int{1, 11, 12, 13, 14} {
		if place >= len(fields) {
			return process{}, fmt.Errorf("process %d: /proc has %d fields only", pid, len(fields))
		}
		if n[i], err = strconv.ParseInt(fields[place], 10, 64); err != nil {
			return process{}, err
		}
	}
	return process{parent: int(n[0]), own: n[1] + n[2], children: n[3] + n[4]}, nil
}

// serverTime is the CPU time that a process and its children have used so far.
// A child that ends between two looks is found again in its parent's account.
func serverTime(pid int) (time.Duration, error) {
	p, err := readProcess(pid)
	if err != nil {
		return 0, err
	}
	ticks := p.own + p.children
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if c, err := readProcess(child); err == nil && c.parent == pid {
			ticks += c.own
		}
	}
	return time.Duration(ticks) * tick, nil
}

// cost is what processes that have ended had used: CPU together, and the largest
// resident memory of one.
type cost struct {
	cpu    time.Duration
	memory int64
}

func (c *cost) add(cmd *exec.Cmd) {
	state := cmd.ProcessState
	c.cpu += state.UserTime() + state.SystemTime()
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		c.memory = max(c.memory, usage.Maxrss<<10) // KiB on Linux
	}
}
