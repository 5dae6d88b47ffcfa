//go:build unix

package embedded

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// entry is a line of the list of processes.
type entry struct {
	pid, parent int
	state       string
}

// childrenOf returns the processes that have the given parent.
func childrenOf(pid int) []int {
	var children []int
	for _, e := range processes() {
		if e.parent == pid {
			children = append(children, e.pid)
		}
	}
	return children
}

// running reports whether the process is there and more than a zombie, whose
// memory and files are gone already.
func running(pid int) bool {
	for _, e := range processes() {
		if e.pid == pid {
			return !strings.HasPrefix(e.state, "Z") && !strings.HasPrefix(e.state, "X")
		}
	}
	return false
}

// processes lists all processes: from /proc where there is one, since a slim
// container has no ps, else from ps.
func processes() []entry {
	if files, err := filepath.Glob("/proc/[0-9]*/stat"); err == nil && len(files) > 0 {
		return fromProc(files)
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,state=").Output()
	if err != nil {
		return nil
	}
	var list []entry
	for line := range strings.Lines(string(out)) {
		list = appendEntry(list, strings.Fields(line))
	}
	return list
}

// fromProc reads lines such as "12 (name) S 1 …", where the name may contain
// anything, a parenthesis too.
func fromProc(files []string) []entry {
	var list []entry
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		rest := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(rest) > 1 {
			list = appendEntry(list, []string{filepath.Base(filepath.Dir(file)), rest[1], rest[0]})
		}
	}
	return list
}

func appendEntry(list []entry, f []string) []entry {
	if len(f) < 3 {
		return list
	}
	pid, err := strconv.Atoi(f[0])
	if err != nil {
		return list
	}
	parent, err := strconv.Atoi(f[1])
	if err != nil {
		return list
	}
	return append(list, entry{pid: pid, parent: parent, state: f[2]})
}
