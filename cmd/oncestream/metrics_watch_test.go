package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// value returns the value of the metric's only series, 0 where there is none.
func (r seenRun) value(name string) float64 {
	r.tb.Helper()
	series := r.series(name)
	if len(series) != 1 {
		return 0
	}
	v, err := strconv.ParseFloat(series[0][strings.LastIndex(series[0], " ")+1:], 64)
	noErr(r.tb, err)
	return v
}

// hold opens a transaction that does the statements and stays open until it is
// rolled back or the test ends.
func (w seenWorld) hold(application string, statements ...string) *pgx.Conn {
	w.tb.Helper()
	cfg, err := pgx.ParseConfig(w.db.URL)
	noErr(w.tb, err)
	cfg.RuntimeParams["application_name"] = application
	conn, err := pgx.ConnectConfig(w.tb.Context(), cfg)
	noErr(w.tb, err)
	w.tb.Cleanup(func() { _ = conn.Close(w.tb.Context()) })
	for _, sql := range append([]string{"begin isolation level repeatable read"}, statements...) {
		_, err := conn.Exec(w.tb.Context(), sql)
		noErr(w.tb, err)
	}
	return conn
}

// One of the partitions is stuck behind a lock in the database: readiness and the
// metrics name that one, and since when, and not the idle one; once the lock is
// gone all is well (case H05).
func TestStuckPartition(t *testing.T) {
	w := newSeenWorld(t, 3, "stuck_after: 300ms\n")
	lock := w.hold("somebody", "insert into effect values ('locked')")
	w.sendIDs(0, `"a"`)
	w.sendIDs(1, `"locked"`)
	r := w.start()
	r.answers("/readyz", 200, "degraded: t/1 stuck while working at offset 0 since ")
	w.waitFor("select count(*) from effect where id = 'a'", "1")
	series := r.series("partition_stuck_seconds")
	if len(series) != 3 || series[0] != "partition=0 0" || series[1] == "partition=1 0" || series[2] != "partition=2 0" {
		t.Errorf("stuck are %q", series)
	}
	if _, body := r.get("/readyz"); strings.Contains(body, "\n") {
		t.Errorf("more than one is named: %s", body)
	}
	_, err := lock.Exec(t.Context(), "rollback")
	noErr(t, err)
	r.answers("/readyz", 200, "ok")
	r.shows("partition_stuck_seconds", "partition=0 0", "partition=1 0", "partition=2 0")
	w.waitFor("select count(*) from effect", "2")
	r.finish()
}

// What retention is about to remove is told before it happens, and who holds back
// the vacuum is named (case D17), once and not at every look; the metrics say how
// much time there is and how old the transaction is. The only partition is halted,
// so the process is not ready.
func TestWarnings(t *testing.T) {
	w := newSeenWorld(t, 1, "on_error: halt\n", "retention.ms", "86400000")
	file := readFile(t, w.file("pipeline.yaml"))
	w.write("pipeline.yaml", strings.Replace(file, "watch: {every: 100ms}", "watch: {every: 100ms, transaction: 200ms}", 1))
	holder := w.hold("nightly report", "select count(*) from effect")
	w.kafka.Produce(t, "t", 0, schema.Record{Value: []byte("bad"), Time: time.Now().Add(-23*time.Hour - 45*time.Minute)})
	r := w.start()
	r.answers("/readyz", 503, "halted: t/0 halted at offset 0 since ")
	r.says("retention will remove records before they are read", 1)
	r.says("an old transaction keeps the vacuum from dead rows", 1)
	eventually(t, func() (bool, string) {
		left, age := r.value("retention_remaining_seconds"), r.value("oldest_transaction_seconds")
		return left > 600 && left < 900 && age > 1, "the metrics show " + strconv.FormatFloat(left, 'f', 0, 64) + " s left and a transaction of " + strconv.FormatFloat(age, 'f', 1, 64) + " s"
	})
	log := r.stderr.String()
	for _, want := range []string{
		`retention will remove .* topic=t partition=0 offset=0 in=14m\d+s retention=24h0m0s lag=1`,
		`an old transaction .* pid=` + strconv.Itoa(int(holder.PgConn().PID())) + ` application="nightly report" transaction=".*since 20\d\d-.*" age=\S+ dead_rows=\d+`,
	} {
		if n := len(regexp.MustCompile(want).FindAllString(log, -1)); n != 1 {
			t.Errorf("%s is told %d times in:\n%s", want, n, log)
		}
	}
	r.finish()
}

// A warning is given once, again after a while, and again when what it warned of
// was over in between; each subject has its own.
func TestWarningsAreRare(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var w warnings
	for i, step := range []struct {
		after time.Duration
		about string
		over  bool
		want  bool
	}{
		{0, "a", false, true},
		{time.Minute, "a", false, false},
		{time.Minute, "b", false, true},
		{warnEvery - time.Second, "a", false, false},
		{warnEvery, "a", false, true},
		{warnEvery + time.Second, "a", true, false},
		{warnEvery + time.Minute, "a", false, true},
	} {
		if step.over {
			w.over(step.about)
			continue
		}
		if got := w.again(step.about, now.Add(step.after)); got != step.want {
			t.Errorf("step %d: %t, want %t", i, got, step.want)
		}
	}
}

// A transaction of which we may not see since when it is open is as old as we have
// seen it be the oldest; another one begins anew.
func TestHiddenTransaction(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	w := &watch{config: &config{watch: watchConfig{transaction: 5 * time.Minute}}}
	look := func(pid int32, after time.Duration) (time.Duration, *transactionStatus) {
		s := &status{transaction: &offsets.Transaction{Kind: "session", PID: pid}}
		return *w.age(s, now.Add(after)), s.Oldest
	}
	for _, step := range []struct {
		pid        int32
		after, age time.Duration
		told       bool
	}{{7, 0, 0, false}, {7, 4 * time.Minute, 4 * time.Minute, false}, {7, 6 * time.Minute, 6 * time.Minute, true}, {8, 7 * time.Minute, 0, false}} {
		if age, told := look(step.pid, step.after); age != step.age || (told != nil) != step.told {
			t.Errorf("pid %d after %v is %v old, told %t", step.pid, step.after, age, told != nil)
		}
	}
}
