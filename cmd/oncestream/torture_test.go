package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest/check"
	"github.com/oncestream/oncestream/processor/processortest/torture"
)

// tortured makes a run of the torture, with this program as the workers.
func tortured(t *testing.T, o torture.Options) torture.Result {
	t.Helper()
	o.Program, o.Environment, o.Folder = []string{"oncestream"}, os.Environ(), t.TempDir()
	var said strings.Builder
	began := time.Now()
	o.Say = func(format string, args ...any) {
		fmt.Fprintf(&said, "%6.1f s  "+format+"\n", append([]any{time.Since(began).Seconds()}, args...)...)
	}
	r, err := torture.Run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	t.Log("\n" + said.String())
	return r
}

// Proves that nothing is lost, doubled or left behind while processes are killed
// and stopped, connections cut at COMMIT, and the database restarted, restored and
// failed over: the smoke of the torture, see `oncestream torture`. Its history is
// judged again from the file, with the same verdicts, and its report names them.
func TestTorture(t *testing.T) {
	r := tortured(t, torture.Options{For: 60 * time.Second})
	for _, v := range r.Verdicts {
		if !v.Holds() {
			t.Error(v)
		} else {
			t.Log(v)
		}
	}
	if len(r.History.Faults) < 15 || len(r.History.Records) < 10_000 {
		t.Errorf("only %d faults and %d records: this was no torture", len(r.History.Faults), len(r.History.Records))
	}
	file, err := os.ReadFile(filepath.Join(r.Options.Folder, torture.HistoryFile))
	noErr(t, err)
	again, err := check.Read(bytes.NewReader(file))
	noErr(t, err)
	report, err := os.ReadFile(filepath.Join(r.Options.Folder, torture.ReportFile))
	noErr(t, err)
	for i, v := range check.Judge(again) {
		if v.Checked != r.Verdicts[i].Checked || v.Count != r.Verdicts[i].Count {
			t.Errorf("judged again: %v", v)
		}
		if !strings.Contains(html.UnescapeString(string(report)), v.Says) {
			t.Errorf("the report does not tell of %s", v.Invariant)
		}
	}
}
