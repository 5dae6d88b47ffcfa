//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is everything that was measured, and where.
type report struct {
	Date       string            `json:"date"`
	Cores      int               `json:"cores"`
	Processor  string            `json:"processor"`
	Postgres   string            `json:"postgres"`
	Settings   map[string]string `json:"settings"`
	Records    int               `json:"records"`
	Partitions int               `json:"partitions"`
	Rounds     int               `json:"rounds"`
	Throughput []figures         `json:"throughput,omitempty"`
	Latency    *figures          `json:"latency,omitempty"`
	Scale      []figures         `json:"scale,omitempty"`
	Idle       []idleFigures     `json:"idle,omitempty"`

	options *options
}

func (m *machine) newReport(ctx context.Context) (*report, error) {
	r := &report{
		Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), Processor: processorName(), Settings: settings(),
		Records: m.records, Partitions: m.partitions, Rounds: m.rounds, options: m.options,
	}
	err := m.admin.QueryRow(ctx, "select current_setting('server_version')").Scan(&r.Postgres)
	return r, err
}

// processorName is the model as Linux has it, empty elsewhere.
func processorName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "model name")
	name, _, _ := strings.Cut(rest, "\n")
	return strings.TrimLeft(name, "\t :")
}

// medians are the figures of each contender, in the order of the table; each
// figure is the median of its rounds.
func (r *report) medians() []figures {
	var all []figures
	for _, c := range contenders() {
		var rounds []figures
		for _, f := range r.Throughput {
			if f.Contender == c.name {
				rounds = append(rounds, f)
			}
		}
		if len(rounds) == 0 {
			continue
		}
		all = append(all, figures{
			Contender: c.name, Records: rounds[0].Records, Took: middle(rounds, func(f figures) time.Duration { return f.Took }),
			Rate:   middle(rounds, func(f figures) float64 { return f.Rate }),
			Server: middle(rounds, func(f figures) float64 { return f.Server }),
			Client: middle(rounds, func(f figures) float64 { return f.Client }),
			Memory: middle(rounds, func(f figures) int64 { return f.Memory }),
		})
	}
	return all
}

// middle is the median; of an even number it is the lower one of the two.
func middle[V cmp.Ordered](list []figures, of func(figures) V) V {
	values := make([]V, len(list))
	for i, f := range list {
		values[i] = of(f)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

func (f figures) line() string {
	return fmt.Sprintf("%-12s %9.0f records/s  PostgreSQL %5.1f µs  Go %5.1f µs  %4d MiB", f.Contender, f.Rate, f.Server, f.Client, f.Memory>>20)
}

// write prints the tables and writes the files.
func (r *report) write(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d cores, %s, PostgreSQL %s (fsync and synchronous_commit on)\n", r.Date, r.Cores, r.Processor, r.Postgres)
	if len(r.Throughput) > 0 {
		fmt.Fprintf(w, "%d records, %d partitions, medians of %d rounds\n\n", r.Records, r.Partitions, r.Rounds)
		r.writeThroughput(w)
	}
	if r.Latency != nil {
		fmt.Fprintf(w, "\nlatency at %d records/s: p50 %.1f ms, p99 %.1f ms\n", r.options.rate, milliseconds(r.Latency.P50), milliseconds(r.Latency.P99))
	}
	if len(r.Scale) > 0 {
		fmt.Fprintf(w, "\nprocesses x partitions, %d records\n", r.Records/scalePart)
	}
	for _, f := range r.Scale {
		fmt.Fprintln(w, f.line())
	}
	for _, f := range r.Idle {
		fmt.Fprintln(w, "idle", f.line())
	}
	return r.writeFiles()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (r *report) writeThroughput(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "contender\trecords/s\tof insert\tof ceiling\tof copy\tPostgreSQL µs\tGo µs\tMiB\t")
	for _, f := range r.medians() {
		fmt.Fprintf(t, "%s\t%.0f\t%s\t%s\t%s\t%.1f\t%.1f\t%d\t\n", f.Contender, f.Rate,
			r.ratio(f.Contender, "insert"), r.ratio(f.Contender, "ceiling"), r.ratio(f.Contender, "copy"), f.Server, f.Client, f.Memory>>20)
	}
	t.Flush()
}

// ratio is the median of the ratios of two contenders in each round, which strays
// less than the ratio of their medians where others use the machine.
func (r *report) ratio(name, of string) string {
	rates := map[int]float64{}
	for _, f := range r.Throughput {
		if f.Contender == of {
			rates[f.Round] = f.Rate
		}
	}
	var ratios []figures
	for _, f := range r.Throughput {
		if f.Contender == name && rates[f.Round] > 0 {
			ratios = append(ratios, figures{Rate: f.Rate / rates[f.Round]})
		}
	}
	if len(ratios) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", middle(ratios, func(f figures) float64 { return f.Rate }))
}

func (r *report) writeFiles() error {
	if r.options.json != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(r.options.json, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if r.options.svg == "" || len(r.Throughput) == 0 {
		return nil
	}
	return os.WriteFile(r.options.svg, []byte(drawBars(r.medians(), r.caption())), 0o644)
}

func (r *report) caption() string {
	return fmt.Sprintf("%d payments, %d partitions, %d cores, PostgreSQL %s, %s", r.Records, r.Partitions, r.Cores, r.Postgres, r.Date)
}
