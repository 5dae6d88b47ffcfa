//go:build unix

package processortest

import (
	"context"
	_ "embed" // for the pom
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// kafkaVersion is the version of the real broker, as jars and as an image.
const kafkaVersion = "4.3.1"

//go:embed jars/pom.xml
var pom []byte

// fetchJars returns the folder of the broker's jars in the user's cache,
// filling it through Maven when it is not there yet.
func fetchJars(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("a folder for the broker's jars (set HOME): %w", err)
	}
	dir := filepath.Join(cache, "oncestream", "kafka-"+kafkaVersion)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	// `go test ./...` runs several test binaries at once, and each may come
	// here first: one fetches, the others wait for it.
	unlock, err := lockFile(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, runMaven(ctx, dir)
}

// runMaven copies the jars into a folder beside dir and renames it at the end,
// so that dir is either whole or absent whenever the fetch is cut short.
func runMaven(ctx context.Context, dir string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	file := filepath.Join(tmp, "pom.xml")
	if err := os.WriteFile(file, pom, 0o600); err != nil {
		return err
	}
	jars := filepath.Join(tmp, "jars")
	mvn := exec.CommandContext(ctx, "mvn", "-B", "-q", "-f", file, "-Dkafka.version="+kafkaVersion,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+jars)
	if out, err := mvn.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch the jars of Kafka %s by Maven: %w\n%s", kafkaVersion, err, out)
	}
	return os.Rename(jars, dir)
}

// lockFile takes an exclusive lock that ends with the process at the latest, so
// that a killed test binary blocks nobody.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = retry(ctx, 200*time.Millisecond, func() error {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			err = backoff.Permanent(err)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
