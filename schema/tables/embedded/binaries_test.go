package embedded

import (
	"archive/zip"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// The newest version wins, by number and not by letter.
func TestVersion(t *testing.T) {
	dirs := []string{"/usr/lib/postgresql/9.6/bin", "/opt/homebrew/opt/postgresql@16/bin", "/usr/pgsql-14/bin", "/opt/homebrew/opt/postgresql/bin"}
	var got []float64
	for _, dir := range dirs {
		got = append(got, version(dir))
	}
	if want := []float64{9.6, 16, 14, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The patterns are well formed, which candidates relies on.
func TestPatterns(t *testing.T) {
	for _, pattern := range binPatterns {
		if _, err := filepath.Match(pattern, "/"); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// A folder that was named must hold the binaries; no other is taken instead.
func TestBinDir(t *testing.T) {
	_, err := Start(t.Context(), Options{BinDir: t.TempDir(), Download: true})
	if err == nil || !strings.Contains(err.Error(), "no initdb and postgres in") {
		t.Errorf("got %v", err)
	}
}

// The binaries are fetched once, kept in the cache where the server's account
// can reach them, and nothing else is left there.
func TestDownload(t *testing.T) {
	var requests atomic.Int32
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		serveArchive(t, w, r)
	}))
	defer mirror.Close()
	cache := cacheInTmp(t)
	who, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Download: true, CacheDir: cache, Mirror: mirror.URL}
	for range 2 {
		bin, err := binaries(t.Context(), o, who)
		if err != nil {
			t.Fatal(err)
		}
		if !complete(bin) || !who.reaches(bin) {
			t.Errorf("%s is not complete or out of reach", bin)
		}
	}
	if n := requests.Load(); n != 2 { // the archive and its checksum
		t.Errorf("%d requests", n)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) != 1 {
		t.Errorf("in the cache: %v, %v", left, err)
	}
}

// A mirror without the binaries gives an error that names the remedies.
func TestDownloadFails(t *testing.T) {
	mirror := httptest.NewServer(http.NotFoundHandler())
	defer mirror.Close()
	_, err := Start(t.Context(), Options{Download: true, CacheDir: cacheInTmp(t), Mirror: mirror.URL})
	if err == nil || !strings.Contains(err.Error(), "install PostgreSQL") {
		t.Errorf("got %v", err)
	}
}

func serveArchive(t *testing.T, w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, ".sha256") {
		http.NotFound(w, r)
		return
	}
	archive, err := os.ReadFile("testdata/binaries.txz")
	if err != nil {
		t.Error(err)
		return
	}
	z := zip.NewWriter(w)
	f, err := z.Create("binaries.txz")
	if err == nil {
		_, err = f.Write(archive)
	}
	if err != nil || z.Close() != nil {
		t.Errorf("serve the archive: %v", err)
	}
}

// cacheInTmp returns a folder that any account can enter; those of t.TempDir
// lie in one that only its owner can.
func cacheInTmp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "oncestream-cache-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
