//go:build unix && !linux

package processortest

import (
	"os/exec"
	"strconv"
	"strings"
)

// stopped reports whether process pid is stopped.
func stopped(pid int) bool {
	state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(state)), "T")
}
