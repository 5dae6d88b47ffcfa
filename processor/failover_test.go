package processor_test

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// newBankWithStandby is a bank on a server of its own, and the same bank as a
// standby has it, which follows asynchronously.
func newBankWithStandby(tb testing.TB) (b, there *bank, primary, standby *embedded.Server) {
	tb.Helper()
	w, primary := newWorldOnServer(tb, 4)
	b = newBank(w, 4)
	standby, err := primary.Standby(tb.Context())
	must(tb, err)
	tb.Cleanup(func() { must(tb, standby.Close()) })
	other := *w
	other.db = w.db.At(tb, standby.URL("postgres"))
	return b, &bank{world: &other, partitions: 4}, primary, standby
}

// sameAs takes over what was sent to b.
func (b *bank) sameAs(other *bank) *bank {
	b.messages, b.records, b.balances = other.messages, other.records, other.balances
	return b
}

// fence stops the old primary, as an operator does; it must run again at the end
// of the test, when its schema is dropped.
func fence(tb testing.TB, old *embedded.Server) {
	tb.Helper()
	must(tb, old.Stop(tb.Context(), embedded.StopImmediate))
	tb.Cleanup(func() { must(tb, old.Restart(context.WithoutCancel(tb.Context()))) })
}

// Proves that a failover to a standby which misses the last commits, while the old
// primary still serves a worker that has not noticed, ends with each effect once
// in the new primary: there are two of everything for a while, two holders of one
// epoch among them, and the compare of the offset keeps them apart (fault 38).
func TestFailoverWhileTheOldPrimaryIsUp(t *testing.T) {
	t.Parallel()
	for name, mixed := range map[string]bool{"its sessions stay": false, "its new sessions go to the new primary": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, promoted, primary, standby := newBankWithStandby(t)
			proxy := behindProxy(t, old.db.URL)
			fenced := make(chan offsets.Claim, 1000)
			unaware := old.start(t, func(cfg *processor.Config) {
				cfg.Owner, cfg.Postgres.URL = "unaware", proxy.URL()
				cfg.Hooks.Fenced = func(_ string, c offsets.Claim) { fenced <- c }
			})
			old.send(200)
			promoted.sameAs(old).passed()
			must(t, standby.Detach(t.Context()))
			old.send(200)
			old.passed() // these are lost
			must(t, standby.Promote(t.Context()))
			if mixed {
				must(t, proxy.Move(promoted.db.URL))
			}
			promoted.start(t, func(cfg *processor.Config) { cfg.Owner, cfg.Postgres.URL = "heir", promoted.db.URL })
			promoted.waitFor(`select count(*) from consumer_offset where owner = 'heir'`, "2")
			old.send(200) // to two primaries
			promoted.waitFor(`select count(*) from consumer_offset where owner = 'heir' and next_offset = 600`, "2")
			if !mixed {
				old.waitFor(`select count(*) from consumer_offset where next_offset = 600`, "2")
				if n := promoted.db.Value(`select count(*) from consumer_offset where next_offset = 200`); n != "2" {
					t.Errorf("%s partitions of the new primary are where the failover left them, want the 2 of the unaware worker", n)
				}
			}
			fence(t, primary)
			must(t, proxy.Move(promoted.db.URL))
			promoted.sameAs(old).passed()
			await(t, fenced, "the unaware worker to learn of it")
			promoted.check()
			unaware.finish() // and the heir takes over
			old.send(100)
			promoted.sameAs(old).passed()
			promoted.check()
			cfg := promoted.config()
			cfg.Postgres.URL = promoted.db.URL
			replayed(t, newProcessor(t, cfg, promoted.pipeline()))
		})
	}
}

// Proves that a connection string with both hosts follows a failover by itself:
// while there is no writer the processor waits and says that it finds none, and
// then does again what the standby has missed; nothing is halted or set aside.
func TestFailoverByConnectionString(t *testing.T) {
	t.Parallel()
	old, promoted, primary, standby := newBankWithStandby(t)
	retries := make(chan error, 1000)
	r := old.start(t, func(cfg *processor.Config) {
		cfg.Postgres.URL = bothHosts(t, old.db.URL, promoted.db.URL)
		cfg.Hooks.Retrying = func(_ string, err error, _ time.Duration) {
			select {
			case retries <- err:
			default:
			}
		}
	})
	old.send(200)
	promoted.sameAs(old).passed()
	must(t, standby.Detach(t.Context()))
	old.send(200)
	old.passed()
	fence(t, primary)
	old.send(200)
	awaitText(t, retries, "read only")
	must(t, standby.Promote(t.Context()))
	promoted.sameAs(old).passed()
	r.finish()
	promoted.check()
}

// bothHosts is a connection string that finds the one of two servers which takes
// writes.
func bothHosts(tb testing.TB, a, b string) string {
	tb.Helper()
	u, err := url.Parse(a)
	must(tb, err)
	other, err := url.Parse(b)
	must(tb, err)
	u.Host += "," + other.Host
	u.RawQuery += "&target_session_attrs=read-write"
	return u.String()
}

// awaitText waits for an error with the text.
func awaitText(tb testing.TB, errs <-chan error, text string) {
	tb.Helper()
	for !strings.Contains(await(tb, errs, "an error with "+text).Error(), text) {
	}
}

// Proves that a server which takes no writes halts nothing and makes no dead
// letter, also for longer than an error of unknown kind is tried, that the reason
// is named, and that the processor leaves it by itself: its sessions there work,
// and nobody cuts them. A first start on it waits, too.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	b, readOnly, _, _ := newBankWithStandby(t)
	proxy := behindProxy(t, b.db.URL)
	retries := make(chan error, 1000)
	warned := make(chan string, 1000)
	r := b.start(t, func(cfg *processor.Config) {
		cfg.Postgres.URL = proxy.URL()
		cfg.Hooks.Retrying = func(_ string, err error, _ time.Duration) {
			select {
			case retries <- err:
			default:
			}
		}
	})
	b.send(200)
	readOnly.sameAs(b).passed()
	must(t, proxy.Move(readOnly.db.URL))
	proxy.CutAll()
	b.send(200)
	for range 4 * 12 { // by four partitions, more than Retry.Attempts of each
		awaitText(t, retries, "the server takes no writes")
	}
	second := b.config()
	second.Group, second.Postgres.URL, second.Logger = b.group+"-2", proxy.URL(), slog.New(slog.NewTextHandler(lines(warned), nil))
	start(t, newProcessor(t, second, texts(sinkFunc(func(context.Context, pgx.Tx, []schema.Message[string]) error { return nil }))))
	if line := awaitLine(t, warned, "will try again"); !strings.Contains(line, "the server takes no writes") {
		t.Errorf("a first start on a read-only server says %s", line)
	}
	must(t, proxy.Move(b.db.URL))
	b.waitFor(`select sum(next_offset) from consumer_offset where consumer_group = '`+b.group+`'`, "1600")
	b.waitFor(`select sum(next_offset) from consumer_offset where consumer_group = '`+b.group+`-2'`, "1600")
	r.finish()
	b.effects(b.messages)
	if n := b.db.Value(`select (select count(*) from dead_letter) + (select count(*) from consumer_offset where state <> 'open')`); n != "0" {
		t.Errorf("%s halts and dead letters were made of a read-only server", n)
	}
}
