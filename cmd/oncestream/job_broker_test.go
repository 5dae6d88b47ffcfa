//go:build broker

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// envRecords names the environment's variable that says how many records the
// main job's test sends.
const envRecords = "ONCESTREAM_TEST_RECORDS"

// testRecords is how many records a test sends: the environment's number, or
// fallback.
func testRecords(tb testing.TB, fallback int) int {
	tb.Helper()
	text, ok := os.LookupEnv(envRecords)
	if !ok {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1000 {
		tb.Fatalf("%s: want a number from 1000 on, got %q", envRecords, text)
	}
	return n
}

// job is the example's pipeline on a broker and a database, run by processes of
// the program itself, and what an auditor knows of the records sent.
type job struct {
	tb    testing.TB
	db    *tablestest.DB
	file  string
	topic string
	env   []string
	audit *audit

	members []*processortest.Process
	peak    int // the highest resident memory of a member, in bytes
}

// newJob makes the example's tables. file is the pipeline file, topic overrides
// its topic.
func newJob(tb testing.TB, broker *processortest.Client, db *tablestest.DB, file, topic string) *job {
	tb.Helper()
	tables, err := os.ReadFile("example/payments.sql")
	must(tb, err)
	db.Exec(string(tables))
	return &job{
		tb: tb, db: db, file: file, topic: topic, audit: newAudit(),
		env: append(os.Environ(), "KAFKA_BROKERS="+strings.Join(broker.Addrs(), ","), "DATABASE_URL="+db.URL,
			"ONCESTREAM_SCHEMA="+db.Schema, "ONCESTREAM_TOPIC="+topic, "ONCESTREAM_LOG_LEVEL=debug"),
	}
}

// newQuickJob is a job with the example's file made quick about failures, and
// under the test's own name, as the shared broker has groups of other tests.
// kafka are further lines of the section kafka.
func newQuickJob(tb testing.TB, broker *processortest.Client, db *tablestest.DB, kafka ...string) *job {
	tb.Helper()
	example, err := os.ReadFile("example/payments.yaml")
	must(tb, err)
	name := strings.ReplaceAll(tb.Name(), "/", "-")
	kafka = append([]string{"start: earliest", "session_timeout: 3s"}, kafka...)
	text := strings.NewReplacer(
		"name: payments\n", "name: "+name+"\nbatch: {max_records: 200}\ndrain_timeout: 3s\n",
		"start: earliest", strings.Join(kafka, "\n  "),
		"url: ${DATABASE_URL}", "url: ${DATABASE_URL}\n  idle_timeout: 2s\n  lock_timeout: 1s",
	).Replace(string(example))
	file := filepath.Join(tb.TempDir(), "payments.yaml")
	must(tb, os.WriteFile(file, []byte(text), 0o600))
	return newJob(tb, broker, db, file, name)
}

// command is the program, of which this test binary is a copy; see TestMain.
func (j *job) command(args ...string) *exec.Cmd {
	cmd := exec.Command("oncestream", args...)
	cmd.Env = j.env
	return cmd
}

// call runs a command that ends by itself.
func (j *job) call(args ...string) (stdout string, code int) {
	j.tb.Helper()
	cmd := j.command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		j.tb.Logf("oncestream %s: exit code %d: %s", strings.Join(args, " "), exit.ExitCode(), stderr.String())
		return string(out), exit.ExitCode()
	}
	must(j.tb, err)
	return string(out), 0
}

// run starts a member of the group.
func (j *job) run(args ...string) *processortest.Process {
	j.tb.Helper()
	m := processortest.StartProcess(j.tb, j.command(append([]string{"run", j.file}, args...)...))
	j.members = append(j.members, m)
	return m
}

// sending is a producer at work.
type sending struct {
	*processortest.Process
	j    *job
	made payments
}

// produce starts to send payments, as many a second as possible where rate is 0.
func (j *job) produce(seed uint64, records, partitions, rate int) *sending {
	j.tb.Helper()
	p := payments{seed: seed, records: records, duplicates: 0.05, partitions: partitions, size: 200}
	cmd := j.command("produce", "--json", "--topic", j.topic, "--seed", fmt.Sprint(seed), "--records", fmt.Sprint(records),
		"--duplicates", fmt.Sprint(p.duplicates), "--partitions", fmt.Sprint(partitions), "--size", fmt.Sprint(p.size), "--rate", fmt.Sprint(rate))
	return &sending{Process: processortest.StartProcess(j.tb, cmd), j: j, made: p}
}

// sent waits until all is sent, takes it into the audit, and compares that with
// what the producer says itself.
func (s *sending) sent() {
	tb := s.j.tb
	tb.Helper()
	line := waitLine(tb, s.Process, `^\{.*"sum".*\}$`)
	s.j.exits(s.Process)
	var said struct {
		Sent, Distinct int64
		Sum            string
	}
	must(tb, json.Unmarshal([]byte(line[0]), &said))
	before := *s.j.audit
	s.j.audit.add(tb, s.made)
	cents := s.j.audit.cents - before.cents
	if said.Sent != s.j.audit.sent-before.sent || said.Distinct != s.j.audit.distinct-before.distinct || said.Sum != euros(cents) {
		tb.Errorf("the producer says %s; the audit finds %d distinct and %s in sum", line[0], s.j.audit.distinct-before.distinct, euros(cents))
	}
}

// patience is how long a test waits for what must happen.
func (j *job) patience() time.Duration {
	return 2*time.Minute + time.Duration(j.audit.sent/2000)*time.Second
}

// until waits until a condition holds, and watches the members' memory meanwhile.
func (j *job) until(what string, holds func() bool) {
	j.tb.Helper()
	deadline := time.NewTimer(j.patience())
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		j.lookAtMemory()
		select {
		case <-tick.C:
		case <-deadline.C:
			j.tb.Fatalf("waited %v for %s; the ledger says\n%s", j.patience(), what,
				j.db.Dump(`select partition, owner, epoch, next_offset, state, reason from consumer_offset order by 1`))
		}
	}
	j.lookAtMemory()
}

func (j *job) lookAtMemory() {
	for _, m := range j.members {
		j.peak = max(j.peak, peakMemory(m.Pid()))
	}
}

// peakMemory returns the most resident memory that a process has ever had, in
// bytes; 0 where the process has ended, or the system is not Linux.
func peakMemory(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	match := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if match == nil {
		return 0
	}
	kib, _ := strconv.Atoi(string(match[1]))
	return kib << 10
}

// handled is how many offsets the group has passed.
func (j *job) handled() int64 {
	j.tb.Helper()
	return j.number(`select coalesce(sum(next_offset - first_offset), 0) from consumer_offset`)
}

// owned is how many partitions a member holds.
func (j *job) owned(m *processortest.Process) int64 {
	j.tb.Helper()
	return j.number(`select count(*) from consumer_offset where owner like '%/' || $1::text`, strconv.Itoa(m.Pid()))
}

func (j *job) number(query string, args ...any) int64 {
	j.tb.Helper()
	n, err := strconv.ParseInt(j.db.Value(query, args...), 10, 64)
	must(j.tb, err)
	return n
}

// exits waits for the end of a process, which must be a good one.
func (j *job) exits(p *processortest.Process) {
	j.tb.Helper()
	code := math.MinInt
	j.until("the end of a process", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		c, err := p.Wait(ctx)
		if err == nil {
			code = c
		}
		return err == nil
	})
	if code != 0 {
		j.tb.Errorf("a process ended with exit code %d; it said last:\n%s", code, strings.Join(tail(p.Lines()), "\n"))
	}
}

func tail(lines []string) []string { return lines[max(0, len(lines)-10):] }

// stops ends members by SIGTERM.
func (j *job) stops(members ...*processortest.Process) {
	j.tb.Helper()
	for _, m := range members {
		must(j.tb, m.Terminate())
	}
	for _, m := range members {
		j.exits(m)
	}
}

func waitLine(tb testing.TB, p *processortest.Process, pattern string) []string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	defer cancel()
	match, err := p.WaitLine(ctx, regexp.MustCompile(pattern))
	must(tb, err)
	return match
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
