//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package processor

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownDir makes sure that dir is a folder that only this user can write to: it
// lies where everybody may create one.
func ownDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(owner.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a folder of this user alone", dir)
	}
	return nil
}

// lockFile locks the file of this path, which it creates, until unlock is called
// or the process ends. It answers errLocked where another holds the lock: also
// one in this process, as a lock belongs to the open file.
func lockFile(path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, errLocked
			}
			return nil, err
		}
		if sameFile(f, path) {
			return func() {
				os.Remove(path) // while it is locked, so that nobody locks a file that is about to go
				f.Close()
			}, nil
		}
		f.Close() // its holder removed it between our open and our lock
	}
}

func sameFile(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, there)
}
