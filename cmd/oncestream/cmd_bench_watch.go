package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// benchRun is what one run has shown. Times are in seconds.
type benchRun struct {
	Size             int     `json:"batch_size"`
	Records          int64   `json:"records"`
	Duplicates       int64   `json:"duplicates"`
	DeadLetters      int64   `json:"dead_letters"`
	Seconds          float64 `json:"seconds"`
	RecordsPerSecond float64 `json:"records_per_second"`
	// Transactions took so long each.
	Transactions int     `json:"transactions"`
	P50          float64 `json:"transaction_p50_seconds"`
	P99          float64 `json:"transaction_p99_seconds"`
	// Steps are the shares of the transactions' time.
	Steps map[string]float64 `json:"steps"`
}

// benchWatch sees a run through its hooks.
type benchWatch struct {
	mu          sync.Mutex
	first, last time.Time
	run         benchRun
	elapsed     []time.Duration
	at          map[int32]benchStep // by partition
	steps       map[processor.Step]time.Duration
}

type benchStep struct {
	step processor.Step
	at   time.Time
}

func newBenchWatch() *benchWatch {
	return &benchWatch{at: map[int32]benchStep{}, steps: map[processor.Step]time.Duration{}}
}

func (w *benchWatch) hooks() processor.Hooks {
	return processor.Hooks{Claimed: w.claimed, Step: w.step, Committed: w.committed}
}

func (w *benchWatch) claimed(string, offsets.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first.IsZero() {
		w.first = time.Now()
	}
}

// step ends the step before, of the same partition's transaction.
func (w *benchWatch) step(s processor.Step, b processor.BatchInfo) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.at[b.Partition]; ok && s != processor.StepBegin {
		w.steps[before.step] += now.Sub(before.at)
	}
	w.at[b.Partition] = benchStep{s, now}
}

func (w *benchWatch) committed(b processor.BatchInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
	w.run.Records += int64(b.Records)
	w.run.Duplicates += int64(b.DuplicatesProducer + b.DuplicatesRedelivered)
	w.run.DeadLetters += int64(b.DeadLetters)
	w.elapsed = append(w.elapsed, b.Elapsed)
}

func (w *benchWatch) result(size int) benchRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.run
	r.Size, r.Transactions, r.Seconds = size, len(w.elapsed), w.last.Sub(w.first).Seconds()
	r.RecordsPerSecond = float64(r.Records) / r.Seconds
	slices.Sort(w.elapsed)
	if n := len(w.elapsed); n > 0 {
		r.P50, r.P99 = w.elapsed[n/2].Seconds(), w.elapsed[n*99/100].Seconds()
	}
	var total time.Duration
	for _, d := range w.steps {
		total += d
	}
	r.Steps = map[string]float64{}
	for step, d := range w.steps {
		r.Steps[string(step)] = d.Seconds() / total.Seconds()
	}
	return r
}

// enough is how near to the best rate a batch size must come: a smaller one has the
// shorter transactions, which is latency, and locks that are held.
const enough = 0.95

// recommended returns the smallest size that carries nearly as much as the best.
func recommended(runs []benchRun) benchRun {
	best := slices.MaxFunc(runs, func(a, b benchRun) int {
		return int(a.RecordsPerSecond) - int(b.RecordsPerSecond)
	})
	chosen := best
	for _, r := range runs {
		if r.RecordsPerSecond >= enough*best.RecordsPerSecond && r.Size < chosen.Size {
			chosen = r
		}
	}
	return chosen
}

func (a *app) writeBench(records int64, runs []benchRun, asJSON bool) error {
	choice := recommended(runs)
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(map[string]any{"records": records, "runs": runs, "recommended_batch_size": choice.Size})
	}
	last := runs[len(runs)-1]
	fmt.Fprintf(a.stdout, "%s records, %s duplicates, %s dead letters\n\n", thousands(last.Records), thousands(last.Duplicates), thousands(last.DeadLetters))
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "BATCH\tRECORDS/S\tP50\tP99\tBEGIN\tKEYS\tEFFECTS\tCOMMIT")
	for _, r := range runs {
		share := func(s processor.Step) string { return fmt.Sprintf("%.0f %%", 100*r.Steps[string(s)]) }
		fmt.Fprintf(t, "%s\t%s\t%.1f ms\t%.1f ms\t%s\t%s\t%s\t%s\n", thousands(r.Size), thousands(int64(r.RecordsPerSecond)), 1000*r.P50, 1000*r.P99,
			share(processor.StepBegin), share(processor.StepAdmit), share(processor.StepApply), share(processor.StepCommit))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "\nbatch.max_records: %d carries %s records a second with %.1f ms a transaction\n",
		choice.Size, thousands(int64(choice.RecordsPerSecond)), 1000*choice.P50)
	return err
}
