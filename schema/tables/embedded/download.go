package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// The version that is fetched, and the prefix of it that is a data folder's.
const (
	fetchVersion = embeddedpostgres.V17
	fetchMajor   = "17"
)

// download returns the folder of fetched binaries, from the cache where they
// are there. Two programs may fetch at once: each unpacks aside, and the first
// to rename wins.
func download(ctx context.Context, o Options, who account) (string, error) {
	cache, err := cacheFolder(o, who)
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "postgres-"+string(fetchVersion))
	if bin := filepath.Join(home, "bin"); complete(bin) {
		return bin, nil
	}
	aside, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(aside)
	if err := fetch(ctx, o.Mirror, aside); err != nil {
		return "", fmt.Errorf("no postgres is installed and none could be fetched: %w (install PostgreSQL 14 or newer, or name its folder)", err)
	}
	if err := os.Rename(filepath.Join(aside, "home"), home); err != nil && !complete(filepath.Join(home, "bin")) {
		return "", err
	}
	return filepath.Join(home, "bin"), nil
}

func cacheFolder(o Options, who account) (string, error) {
	dir := o.CacheDir
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w: set Options.CacheDir", err)
		}
		if dir = filepath.Join(user, "oncestream"); who.name != "" && !who.reaches(user) {
			dir = "/var/cache/oncestream"
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if !who.reaches(dir) {
		return "", fmt.Errorf("the account %s cannot enter the cache folder %s", who.name, dir)
	}
	return filepath.Abs(dir)
}

// fetch brings the binaries to dir/home. The library has no call that only
// fetches, and it refuses root further on. So it is given a data folder that
// looks initialised and is empty: it fetches, skips initdb, and the start that
// follows fails at once. Whether the binaries came is what counts. The library
// takes no context: a fetch that has begun is not broken off.
func fetch(ctx context.Context, mirror, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, home := filepath.Join(dir, "data"), filepath.Join(dir, "home")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(fetchMajor+"\n"), 0o600); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	cfg := embeddedpostgres.DefaultConfig().Version(fetchVersion).
		CachePath(dir).RuntimePath(filepath.Join(dir, "run")).BinariesPath(home).DataPath(data).
		Port(uint32(port)).Logger(io.Discard)
	if mirror != "" {
		cfg = cfg.BinaryRepositoryURL(mirror)
	}
	server := embeddedpostgres.NewDatabase(cfg)
	err = server.Start()
	if err == nil {
		err = errors.Join(errors.New("an empty data folder was started"), server.Stop())
	}
	if !complete(filepath.Join(home, "bin")) {
		return err
	}
	return os.Chmod(home, 0o755)
}
