//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is who the server runs as; the zero account is whoever runs the
// program.
type account struct {
	name     string
	uid, gid int
}

// serverAccount chooses one that PostgreSQL accepts.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		return account{name: name, uid: uid, gid: gid}, errors.Join(err1, err2)
	}
	return account{}, errors.New("postgres refuses to run as root and the machine has neither an account postgres nor nobody: run as another user")
}

// command returns a command that runs as the account in the folder. It leads a
// session of its own, so that a Ctrl-C at the terminal reaches the program
// only: the server must outlive the program's orderly end.
func (a account) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a.name != "" {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
		cmd.Env = append(os.Environ(), "HOME="+dir, "USER="+a.name)
	}
	return cmd
}

// makeFolder makes the server's folder where the account can reach it. A
// temporary folder of root's own (mode 700) is passed over for a public one.
func makeFolder(who account) (string, error) {
	for _, root := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		root, err := filepath.EvalSymlinks(root)
		if err != nil || !who.reaches(root) {
			continue
		}
		dir, err := os.MkdirTemp(root, "oncestream-postgres-")
		if err != nil {
			continue
		}
		if who.name == "" {
			return dir, nil
		}
		if err := os.Chown(dir, who.uid, who.gid); err != nil {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
		return dir, nil
	}
	return "", fmt.Errorf("no temporary folder that the account %s can enter: set TMPDIR to one", who.name)
}

// own hands a file or a folder over to the account.
func (a account) own(path string) error {
	if a.name == "" {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// reaches reports whether the account may enter the folder and all above it.
func (a account) reaches(dir string) bool {
	if a.name == "" {
		return true
	}
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || !a.enters(info) {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

func (a account) enters(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case !ok:
		return false
	case int(st.Uid) == a.uid:
		return mode&0o100 != 0
	case int(st.Gid) == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}
