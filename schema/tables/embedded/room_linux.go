package embedded

import (
	"errors"
	"fmt"
	"syscall"
)

// mountRoom mounts a file system in memory of so many bytes.
func mountRoom(who account, dir string, bytes int64) error {
	options := fmt.Sprintf("size=%d,mode=0700", bytes)
	if who.name != "" {
		options += fmt.Sprintf(",uid=%d,gid=%d", who.uid, who.gid)
	}
	if err := syscall.Mount("oncestream", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	return nil
}

// resizeRoom gives it another size.
func resizeRoom(dir string, bytes int64) error {
	return syscall.Mount("oncestream", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_NOSUID|syscall.MS_NODEV, fmt.Sprintf("size=%d", bytes))
}

// fillRoom gives it the size of what it holds. What is written meanwhile makes
// that too small, which is refused, and tried again.
func fillRoom(dir string) error {
	for {
		var is syscall.Statfs_t
		if err := syscall.Statfs(dir, &is); err != nil {
			return err
		}
		err := resizeRoom(dir, max(1, int64(is.Blocks-is.Bfree))*is.Bsize)
		if !errors.Is(err, syscall.EINVAL) {
			return err
		}
	}
}

// unmountRoom takes it away, also from under a process that is about to end.
func unmountRoom(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }
