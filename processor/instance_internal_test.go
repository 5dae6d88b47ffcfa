//go:build unix

package processor

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// aPlace is a host with a folder for locks of its own.
func aPlace(tb testing.TB) place {
	return place{host: "host.example", machine: "m1", dir: filepath.Join(tb.TempDir(), "locks")}
}

func chosen(tb testing.TB, p place, id, group string) instance {
	tb.Helper()
	i, err := p.choose(Kafka{InstanceID: id}, group)
	if err != nil {
		tb.Fatal(err)
	}
	return i
}

// Proves that two processes of a group on one host have different instance ids,
// that one which ends leaves its id to the next, and nothing in the folder.
func TestInstanceSlots(t *testing.T) {
	p := aPlace(t)
	first, second := chosen(t, p, InstanceAuto, "g"), chosen(t, p, InstanceAuto, "g")
	if first.id == second.id || !first.automatic {
		t.Errorf("two processes of one group are %q and %q", first.id, second.id)
	}
	if other := chosen(t, p, InstanceAuto, "another"); other.id != first.id {
		t.Errorf("the first of another group is %q, want %q: ids are the group's own", other.id, first.id)
	}
	first.release()
	heir := chosen(t, p, InstanceAuto, "g")
	if heir.id != first.id {
		t.Errorf("the id after %q was freed is %q", first.id, heir.id)
	}
	heir.release()
	second.release()
	left, err := filepath.Glob(filepath.Join(p.dir, digest("g")+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Proves that hosts of the same name, and users of one host, have different ids,
// and that whatever the host is called the id is one that Kafka takes.
func TestInstanceNames(t *testing.T) {
	p := aPlace(t)
	clone, user, odd := p, p, p
	clone.machine, user.dir, odd.host = "m2", p.dir+"2", strings.Repeat("ä b/", 200)
	seen := map[string]bool{}
	for _, at := range []place{p, clone, user, odd} {
		name := at.name(0)
		if seen[name] || len(name) > 249 || !regexp.MustCompile(`^[a-zA-Z0-9._-]+$`).MatchString(name) {
			t.Errorf("the id of %q is %q, of %v", at.host, name, seen)
		}
		seen[name] = true
	}
}

// Proves that an id that was configured is refused at once to a second pipeline
// of the group, in this process or another, and not to one of another group
// (case A10).
func TestInstanceIsTaken(t *testing.T) {
	p := aPlace(t)
	first := chosen(t, p, "one", "g")
	_, err := p.choose(Kafka{InstanceID: "one"}, "g")
	if err == nil || !strings.HasPrefix(err.Error(), `config: kafka.instance_id: each process of group g needs its own, or auto (got "one"`) {
		t.Errorf("the second one: %v", err)
	}
	if other := chosen(t, p, "one", "another"); other.id != "one" || other.automatic {
		t.Errorf("of another group: %+v", other)
	}
	first.release()
	if again := chosen(t, p, "one", "g"); again.id != "one" {
		t.Errorf("after the first has ended: %+v", again)
	}
}

// Proves that a process is a dynamic member where no lock can be taken or none is
// wanted, that a pod's name does without a lock, and that a configured id does,
// too.
func TestInstanceWithoutLock(t *testing.T) {
	p := aPlace(t)
	if err := os.Symlink(t.TempDir(), p.dir); err != nil { // such as another user may have made
		t.Fatal(err)
	}
	if i, err := p.choose(Kafka{InstanceID: InstanceAuto}, "g"); err == nil || i.id != "" {
		t.Errorf("in a folder that is not ours: %+v, %v", i, err)
	}
	if i := chosen(t, p, "one", "g"); i.id != "one" {
		t.Errorf("a configured id: %+v", i)
	}
	if i := chosen(t, p, InstanceNone, "g"); i.id != "" {
		t.Errorf("none: %+v", i)
	}
	p.pod = true
	if i := chosen(t, p, InstanceAuto, "g"); i.id != p.name(0) || !i.automatic {
		t.Errorf("a pod: %+v", i)
	}
}

// Proves that a lock file which its holder removes between our open and our lock
// is not taken for the one that others see.
func TestInstanceLockFileIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	unlock()
	if sameFile(old, path) {
		t.Error("a file that is gone passes for the one of its path")
	}
	again, err := lockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again()
	if sameFile(old, path) {
		t.Error("a file that is gone passes for its successor")
	}
	if _, err := lockFile(path); !errors.Is(err, errLocked) {
		t.Errorf("the second lock: %v", err)
	}
}
