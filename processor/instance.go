package processor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// instance is the name under which this process is a static member of its group
// (KIP-345). The zero value is a dynamic member.
//
// A group waits for a silent member until its session times out, unless a
// member of the same instance id joins: that one takes its place at once. So a
// process that is killed and started again should have the id that it had
// before, and no other process may have it meanwhile. A lock on a file gives
// both: the kernel frees it when its process dies, however it dies, and its
// successor, which looks for the first free slot, finds the same one.
type instance struct {
	id string
	// automatic tells that we have chosen the id, and may do without it.
	automatic bool
	unlock    func()
}

// release lets another process have the instance id.
func (i instance) release() {
	if i.unlock != nil {
		i.unlock()
	}
}

// place is what tells this process from those elsewhere.
type place struct {
	host string
	// machine differs between hosts of one name; empty where it is not known.
	machine string
	// pod tells that the host name is a pod's: it belongs to this process alone,
	// and stays when the container is restarted.
	pod bool
	// dir holds the lock files of this user.
	dir string
}

var (
	errLocked = errors.New("another process holds the lock")
	errNoSlot = fmt.Errorf("all %d slots of the group are taken on this host", maxSlots)
)

// maxSlots is how many processes of one group and one host are static members.
const maxSlots = 64

// here is the place of this process.
func here() place {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	_, pod := os.LookupEnv("KUBERNETES_SERVICE_HOST") // set by Kubernetes in each container, never by a user
	return place{
		host: host, machine: machineID(), pod: pod,
		dir: filepath.Join(os.TempDir(), "oncestream-"+strconv.Itoa(os.Getuid())),
	}
}

func machineID() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if id, err := os.ReadFile(path); err == nil && len(id) > 0 {
			return strings.TrimSpace(string(id))
		}
	}
	return ""
}

// choose returns the instance that the configuration asks for. Of "auto" an
// error means that there is none, and why; a dynamic member does as well. An id
// that another process of this host uses is an error of the configuration.
func (p place) choose(k Kafka, group string) (instance, error) {
	switch k.InstanceID {
	case InstanceNone:
		return instance{}, nil
	case InstanceAuto:
		return p.automatic(group)
	}
	brokers := slices.Sorted(slices.Values(k.Brokers))
	unlock, err := p.lock(digest(append(brokers, group, k.InstanceID)...))
	if errors.Is(err, errLocked) {
		return instance{}, fmt.Errorf("config: kafka.instance_id: each process of group %s needs its own, or auto (got %q, which another one on this host uses)", group, k.InstanceID)
	}
	return instance{id: k.InstanceID, unlock: unlock}, nil // where nothing can be locked, the brokers notice
}

// automatic takes the first free slot of the group on this host.
func (p place) automatic(group string) (instance, error) {
	for slot := range maxSlots {
		unlock, err := p.lock(digest(group) + "-" + strconv.Itoa(slot))
		switch {
		case err == nil:
			return instance{id: p.name(slot), automatic: true, unlock: unlock}, nil
		case errors.Is(err, errLocked):
			continue
		case p.pod:
			return instance{id: p.name(0), automatic: true}, nil
		}
		return instance{}, err
	}
	return instance{}, errNoSlot
}

// notLegal are the characters that Kafka's own clients refuse in an instance id.
var notLegal = regexp.MustCompile(`[^a-zA-Z0-9._-]+`)

// name is the instance id of a slot. Two users of one host have lock files of
// their own, so the folder is part of the name.
func (p place) name(slot int) string {
	host := notLegal.ReplaceAllString(p.host, "-")
	return fmt.Sprintf("oncestream-%s-%s-%d", host[:min(len(host), maxHost)], digest(p.machine, p.dir)[:8], slot)
}

// maxHost keeps an instance id below the 249 characters that Kafka allows.
const maxHost = 200

// digest names a list of texts in 16 characters that fit a file's name.
func digest(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// lock takes the lock of this name, or answers errLocked, or why there is none.
func (p place) lock(name string) (unlock func(), err error) {
	if err := ownDir(p.dir); err != nil {
		return nil, fmt.Errorf("processor: lock an instance id: %w", err)
	}
	unlock, err = lockFile(filepath.Join(p.dir, name+".lock"))
	if err != nil {
		return nil, fmt.Errorf("processor: lock an instance id: %w", err)
	}
	return unlock, nil
}
