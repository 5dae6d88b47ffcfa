package registry_test

import (
	"io"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/schema/registry"
)

func discard() *log.Logger { return log.New(io.Discard, "", 0) }

// All faults of the options come in one error, and none of them shows a password.
func TestOptions(t *testing.T) {
	_, err := registry.Open(registry.Options{
		URL: "registry:8081, https://u:secret@registry, http://[::1", Password: "secret", Timeout: -time.Second,
	})
	for _, want := range []string{"https://registry:8081", "give User and Password", "cannot be read", "without User", "-1s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%v shows the password", err)
	}
	if _, err := registry.Open(registry.Options{}); err == nil {
		t.Error("no address, no error")
	}
	if _, err := registry.Open(registry.Options{URL: "http://r", User: "u", Token: "t"}); err == nil {
		t.Error("two ways to authenticate, no error")
	}
}
