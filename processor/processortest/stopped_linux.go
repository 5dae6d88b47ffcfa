package processortest

import "golang.org/x/sys/unix"

// stopped reports whether our child pid is stopped with all its threads, which
// is when the kernel tells its parent.
func stopped(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}
