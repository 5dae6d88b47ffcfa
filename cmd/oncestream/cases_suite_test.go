package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestCases runs what people have met with tools like this one, each as a
// folder of testdata/cases that the whole program is run on:
//
//	table.sql       the tables of the effects
//	pipeline.yaml   the pipeline, of group "case" and topic "t"
//	records.ndjson  what is sent to the topic; see caseRecord
//	schema-N.avsc, schema-N.proto   what the registry has under the id N
//	want.txt        what is done then, and what must come of it
//
// want.txt is a list of commands (see caseWorld.command), whose answers -rewrite
// writes. A new case is a new folder. What all cases prove besides: the account
// of each partition adds up, and after a rewind to the first offset the same
// records add nothing to any table.
func TestCases(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("testdata/cases/*/want.txt")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, want := range folders {
		dir := filepath.Dir(want)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			w := newCaseWorld(t, dir)
			datadriven.RunTest(t, want, w.command)
		})
	}
}

// command runs one command of a want.txt:
//
//	run [exit=N]               run to the end; answers with what it has complained of
//	send file=F                send the records of another file of the folder
//	sql                        run the statements of the input
//	query                      answer with the rows
//	dead-letters               answer with what was set aside
//	offsets                    answer with the account of each partition
//	again                      rewind to the first offsets and run: nothing may change
//	oncestream args=(…) [exit=N]   run the program on the pipeline file; answers with what it prints
//	asked id=N                 how often the registry was asked for a schema
func (w *caseWorld) command(t *testing.T, d *datadriven.TestData) string {
	w.tb = t
	switch d.Cmd {
	case "run":
		return w.exits(d, "run", w.file("pipeline.yaml"), "--to-end").complaints()
	case "oncestream":
		var args []string
		d.ScanArgs(t, "args", &args)
		return w.exits(d, append(args, w.file("pipeline.yaml"))...).stdout
	case "asked":
		var id string
		d.ScanArgs(t, "id", &id)
		return strconv.Itoa(w.registry.asked(id))
	case "send":
		var file string
		d.ScanArgs(t, "file", &file)
		w.send(readCaseRecords(t, w.file(file)))
		return ""
	case "sql":
		w.db.Exec(d.Input)
		w.db.Pool.Reset() // what it has prepared may have another result now
		return ""
	case "query":
		return w.db.Dump(d.Input)
	case "dead-letters":
		return w.deadLetters()
	case "offsets":
		return w.account()
	case "again":
		return w.again()
	}
	d.Fatalf(t, "unknown command %q", d.Cmd)
	return ""
}

// exits runs the program, which must end with the code of the command's exit=N.
func (w *caseWorld) exits(d *datadriven.TestData, args ...string) outcome {
	w.tb.Helper()
	want := exitOK
	d.MaybeScanArgs(w.tb.(*testing.T), "exit", &want)
	got := w.run(args...)
	if got.code != want {
		d.Fatalf(w.tb.(*testing.T), "oncestream %s exits with %d, want %d:\n%s", strings.Join(args, " "), got.code, want, got.stderr)
	}
	return got
}

// deadLetters lists what was set aside, with the field in words only where
// there is no column.
func (w *caseWorld) deadLetters() string {
	return w.db.Dump(`select partition, record_offset as offset, reason, coalesce(sqlstate, '-') as sqlstate,
  coalesce(column_name, '-') as "column", coalesce(constraint_name, '-') as "constraint", state
  from dead_letter order by partition, record_offset`)
}

// account lists the account of each partition, and fails where it does not add
// up: each offset is an effect (a key that is kept), a duplicate or a dead
// letter. There are no gaps in the log of a case.
func (w *caseWorld) account() string {
	w.tb.Helper()
	if bad := w.db.Rows(`select * from (select partition, next_offset - first_offset as passed, records,
    records - duplicates_producer - duplicates_redelivery - dead_letters as effects,
    (select count(*) from processed_message p where p.partition = c.partition) as keys from consumer_offset c) x
  where passed <> records or effects <> keys`); len(bad) > 0 {
		w.tb.Errorf("the account does not add up (partition, passed, records, effects, keys): %v", bad)
	}
	return w.db.Dump(`select partition, next_offset as next, duplicates_producer as duplicates, dead_letters as dead from consumer_offset order by partition`)
}

// again rewinds the group to where it began and runs again. All tables but the
// position must be as they were.
func (w *caseWorld) again() string {
	w.tb.Helper()
	w.account()
	before := w.everything()
	w.db.Exec(`update consumer_offset set next_offset = first_offset, epoch = epoch + 1`)
	if got := w.run("run", w.file("pipeline.yaml"), "--to-end"); got.code != exitOK {
		w.tb.Errorf("the second run exits with %d: %s", got.code, got.stderr)
	}
	after := w.everything()
	if before != after {
		return fmt.Sprintf("before:\n%safter:\n%s", before, after)
	}
	return "unchanged"
}

// everything is the content of the user's tables, of the keys and of the dead
// letters.
func (w *caseWorld) everything() string {
	var b strings.Builder
	ledger := `('consumer_offset', 'dead_letter', 'offset_change', 'handler', 'duplicate_message', 'outbox', 'call', 'key_floor')`
	for _, row := range w.db.Rows(`select format('%I', relname) from pg_class where relkind in ('r', 'p') and relnamespace = current_schema::regnamespace
  and relname not in ` + ledger + ` and relname !~ 'version' order by 1`) {
		fmt.Fprintf(&b, "%s\n%s", row[0], w.db.Dump("select * from "+row[0]+" x order by x::text"))
	}
	return b.String() + w.deadLetters()
}

func (w *caseWorld) file(name string) string { return filepath.Join(w.dir, name) }

func readFile(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}
