package processor_test

import (
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// newBankWithArchive is a bank of four partitions on a server of its own, whose
// database can be restored.
func newBankWithArchive(tb testing.TB) (*bank, *embedded.Server, embedded.Backup) {
	tb.Helper()
	w, server := newWorldOnServer(tb, 4, func(o *embedded.Options) { o.Archive = true })
	b := newBank(w, 4)
	backup, err := server.Backup(tb.Context())
	must(tb, err)
	return b, server, backup
}

// Proves that a database which is restored to an earlier moment, from a backup
// and the archive of its log, is brought up to date by a processor that ran on
// through it, although not one record comes that would show it what was lost:
// effects, keys and offsets are done again together, each once (fault 37).
func TestRestoredUnderARunningProcessor(t *testing.T) {
	t.Parallel()
	b, server, backup := newBankWithArchive(t)
	wentBack := make(chan [2]offsets.Claim, 100)
	warned := make(chan string, 1000)
	r := b.start(t, func(cfg *processor.Config) {
		cfg.Hooks.WentBack = func(_ string, before, now offsets.Claim) { wentBack <- [2]offsets.Claim{before, now} }
		cfg.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(lines(warned), &testWriter{tb: t}), nil))
	})
	b.send(300)
	b.passed()
	must(t, server.RestorePoint(t.Context(), "kept"))
	b.send(300)
	b.passed()
	must(t, server.Restore(t.Context(), backup, "kept"))
	b.db.Pool.Reset() // the test's own connections are gone, too
	lost := map[int32]bool{}
	for len(lost) < 4 {
		c := await(t, wentBack, "each partition to go back")
		if c[0].Next != 600 || c[1].Next != 300 {
			t.Errorf("partition %d went back from offset %d to %d, want 600 to 300", c[0].Partition, c[0].Next, c[1].Next)
		}
		lost[c[0].Partition] = true
	}
	line := awaitLine(t, warned, "the database went back")
	if !strings.Contains(line, "offset 300, ours is") || !strings.Contains(line, "offset 600") {
		t.Errorf("both positions are wanted in %q", line)
	}
	b.passed()
	b.check()
	b.send(100) // and it goes on
	b.passed()
	r.finish()
	b.check()
	replayed(t, newProcessor(t, b.config(), b.pipeline()))
}

// Proves the same of a processor that is started after the restore and remembers
// nothing: Kafka's own offset, which is ahead now, is ignored, and said to be
// ahead in a warning (fault 37, case B16).
func TestRestoredBeforeTheStart(t *testing.T) {
	t.Parallel()
	b, server, backup := newBankWithArchive(t)
	b.send(300)
	toEnd(t, newProcessor(t, b.config(), b.pipeline()))
	must(t, server.RestorePoint(t.Context(), "kept"))
	b.send(300)
	toEnd(t, newProcessor(t, b.config(), b.pipeline()))
	must(t, server.Restore(t.Context(), backup, "kept"))
	b.db.Pool.Reset()
	if stored := b.db.Value(`select sum(next_offset) from consumer_offset`); stored != "1200" {
		t.Errorf("the restored ledger is at %s, want 1200", stored)
	}
	for p := range b.partitions {
		if offset, _ := b.GroupOffset(t, b.group, b.topic, p); offset != 600 {
			t.Errorf("Kafka's offset of partition %d is %d, want 600", p, offset)
		}
	}
	warned := make(chan string, 1000)
	cfg := b.config()
	cfg.Logger = slog.New(slog.NewTextHandler(lines(warned), nil))
	toEnd(t, newProcessor(t, cfg, b.pipeline()))
	line := awaitLine(t, warned, "Kafka's offset of the group is ahead")
	for p := range 4 {
		if want := strconv.Itoa(p) + ": Kafka 600, database 300"; !strings.Contains(line, want) {
			t.Errorf("%q is not in %q", want, line)
		}
	}
	b.check()
	replayed(t, newProcessor(t, b.config(), b.pipeline()))
}

// Proves that a running processor survives a restore to a moment before the group
// and its handler were known, also when another handler has got its number
// meanwhile: everything is done again, and the keys of the two are kept apart.
func TestRestoredToBeforeTheBeginning(t *testing.T) {
	t.Parallel()
	b, server, backup := newBankWithArchive(t)
	proxy := behindProxy(t, b.db.URL)
	must(t, server.RestorePoint(t.Context(), "empty"))
	r := b.start(t, func(cfg *processor.Config) { cfg.Postgres.URL = proxy.URL() })
	b.send(100)
	b.passed()
	number := b.db.Value(`select id from handler`)
	proxy.Down()
	must(t, server.Restore(t.Context(), backup, "empty"))
	b.db.Pool.Reset()
	b.db.Exec(`insert into handler (name) values ('other')`)
	if got := b.db.Value(`select id from handler`); got != number {
		t.Fatalf("the other handler has the number %s, want %s, which is to be taken", got, number)
	}
	proxy.Up()
	b.passed()
	r.finish()
	b.check()
	if n := b.db.Value(`select count(*) from processed_message where handler = $1::smallint`, number); n != "0" {
		t.Errorf("%s keys are kept under the number of the other handler", n)
	}
	replayed(t, newProcessor(t, b.config(), b.pipeline()))
}

// behindProxy returns a proxy before the server of a connection string.
func behindProxy(tb testing.TB, server string) *pgproxy.Proxy {
	tb.Helper()
	proxy, err := pgproxy.Listen(server)
	must(tb, err)
	tb.Cleanup(func() { must(tb, proxy.Close()) })
	return proxy
}
