package embedded

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Where distributions put the binaries, outside PATH because several versions
// live side by side.
var binPatterns = [...]string{
	"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
	"/usr/pgsql-*/bin",                  // the PostgreSQL project's packages for Red Hat
	"/usr/lib/postgresql*/bin",          // SUSE
	"/usr/libexec/postgresql*",          // Alpine
	"/opt/homebrew/opt/postgresql*/bin", // Homebrew on ARM
	"/usr/local/opt/postgresql*/bin",    // Homebrew on Intel
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin", // from source
}

// binaries returns the folder of initdb and postgres.
func binaries(ctx context.Context, o Options, who account) (string, error) {
	switch {
	case o.BinDir != "":
		if !complete(o.BinDir) {
			return "", fmt.Errorf("no initdb and postgres in %s", o.BinDir)
		}
		return filepath.Abs(o.BinDir)
	case o.Download:
		return download(ctx, o, who)
	}
	for _, dir := range candidates() {
		if complete(dir) && who.reaches(dir) {
			return dir, nil
		}
	}
	return download(ctx, o, who)
}

// candidates lists the folders to look in, the best first. The one of PATH is
// where initdb really is: it looks for postgres beside itself.
func candidates() []string {
	var dirs []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if initdb, err = filepath.EvalSymlinks(initdb); err == nil {
			dirs = append(dirs, filepath.Dir(initdb))
		}
	}
	for _, pattern := range binPatterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			continue // the pattern's fault, which a test would show
		}
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
		dirs = append(dirs, found...)
	}
	return dirs
}

// version returns the first number in the folder's name: "/usr/pgsql-16/bin" is
// 16. Where there is none it is 0.
func version(dir string) float64 {
	start := strings.IndexAny(dir, "0123456789")
	if start < 0 {
		return 0
	}
	number := dir[start:]
	if end := strings.IndexFunc(number, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		number = number[:end]
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return v
}

func complete(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() || info.Mode().Perm()&0o111 == 0 {
			return false
		}
	}
	return true
}
