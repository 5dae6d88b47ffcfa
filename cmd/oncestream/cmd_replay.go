package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/processor"
)

// replayFlags are what the command line says.
type replayFlags struct {
	from, to                    string
	beyondFloor, dryRun, asJSON bool
	shadow                      processor.ShadowOptions
	keys                        []string
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Prove that nothing is missing",
		Long: `replay reads again what the group has read, under the same handler, and expects
that every record has had its effect. It runs the effects of those that have not
inside a transaction that is rolled back: it changes nothing, whatever it finds.

It exits with 0 where nothing was new, with 3 where something was, and names the
first few of them. The group may go on meanwhile.

--dry-run asks the same reading another question: not whether something is missing,
but what would change. It prints by table how many rows would be written, exits with
0, and with --to end goes on to what the group has not read yet.

--into SCHEMA rebuilds the effects from nothing in tables of their own, beside the
live ones and under a ledger of their own, and prints how the live tables differ:
rows that are missing, extra or different, by table and key. The schema stays, to be
looked at, unless --drop says otherwise. It exits with 3 where the tables differ.

--from and --to bound what is read: an offset for all partitions, or offsets by
partition such as 0=100,3=250. Where keys were purged (keys.retain), a missing one
says nothing: a range that begins there is refused, unless --beyond-floor says that
its records may show as new. A compacted topic is no history, and is said to be none.`,
		Example: `  oncestream replay payments.yaml
  oncestream replay payments.yaml --from 0=1000 --to 0=2000
  oncestream replay payments.yaml --dry-run --to end
  oncestream replay payments.yaml --into rebuilt --exclude payments.stored_at
  oncestream replay payments.yaml --into rebuilt --replace --drop --json`,
		Args: oneFile,
	}
	flags := configFlags(cmd, "brokers", "topic", "database-url", "schema")
	f.define(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		if f.shadow.Schema != "" {
			return a.shadow(cmd.Context(), c, &f)
		}
		return a.replay(cmd.Context(), c, &f)
	}
	return cmd
}

func (f *replayFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "first", "where to begin: first (where the group began), earliest (what the log still holds), or offsets")
	flags.StringVar(&f.to, "to", "stored", "where to end: stored (how far the group is), end (of the log; with --dry-run), or offsets")
	flags.BoolVar(&f.beyondFloor, "beyond-floor", false, "begin where keys were purged too")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would change, table by table")
	flags.BoolVar(&f.asJSON, "json", false, "print the report as JSON")
	flags.StringVar(&f.shadow.Schema, "into", "", "rebuild the effects in this schema, and compare")
	flags.BoolVar(&f.shadow.Replace, "replace", false, "with --into: replace what an earlier one has left in the schema")
	flags.BoolVar(&f.shadow.Drop, "drop", false, "with --into: drop the schema at the end")
	flags.BoolVar(&f.shadow.Strict, "strict", false, "with --into: columns that the database fills in by itself (now(), sequences) count too")
	flags.StringSliceVar(&f.shadow.Exclude, "exclude", nil, "with --into: a column that is not compared, as table.column; repeatable")
	flags.StringSliceVar(&f.shadow.WithRows, "with-rows", nil, "with --into: a table whose rows the effects depend on; repeatable")
	flags.StringArrayVar(&f.keys, "key", nil, "with --into: pair the rows of a table by these columns instead of its primary key, as table=column,column; repeatable")
}

// check refuses flags that do not go together.
func (f *replayFlags) check() error {
	into := f.shadow.Schema != ""
	switch {
	case into && f.dryRun:
		return usagef("--into and --dry-run: one at a time")
	case f.to == "end" && !f.dryRun:
		return usagef("--to end: what the group has not read has had no effect, so that only --dry-run has something to say of it")
	case !into && (f.shadow.Replace || f.shadow.Drop || f.shadow.Strict || len(f.shadow.Exclude)+len(f.shadow.WithRows)+len(f.keys) > 0):
		return usagef("--replace, --drop, --strict, --exclude, --with-rows and --key: they go with --into")
	}
	for _, text := range f.keys {
		table, columns, ok := strings.Cut(text, "=")
		if !ok || table == "" || columns == "" {
			return usagef("--key: must be table=column,column (got %q)", text)
		}
		if f.shadow.Keys == nil {
			f.shadow.Keys = map[string][]string{}
		}
		f.shadow.Keys[table] = splitList(columns)
	}
	return nil
}

func (a *app) replay(ctx context.Context, c *config, f *replayFlags) error {
	p, err := a.openPipeline(ctx, c)
	if err != nil {
		return err
	}
	r, err := f.bounds(ctx, c.engine.Kafka)
	if err != nil {
		return err
	}
	report, err := a.replayShown(ctx, p, r)
	if err != nil {
		return err
	}
	if f.asJSON {
		err = json.NewEncoder(a.stdout).Encode(report)
	} else {
		writeReport(a, report, f.dryRun)
	}
	if err == nil && !report.Clean() && !f.dryRun {
		err = fmt.Errorf("%w: %d, and %d at fault", errNew, report.Fresh, report.Faults)
	}
	return err
}

// bounds reads the range.
func (f *replayFlags) bounds(ctx context.Context, kafka processor.Kafka) (processor.Range, error) {
	to := f.to
	if to == "end" {
		to = "stored"
	}
	r, err := replayRange(ctx, kafka, f.from, to)
	r.BeyondFloor, r.ToEnd = f.beyondFloor, f.to == "end"
	return r, err
}

// replayShown replays with a progress.
func (a *app) replayShown(ctx context.Context, p *processor.Processor, r processor.Range) (processor.Report, error) {
	var bar *progress
	r.Progress = func(done, total int64) {
		if bar == nil {
			bar = a.newProgress("replayed", total)
		}
		bar.set(done)
	}
	report, err := p.Replay(ctx, r)
	if bar != nil && err == nil {
		bar.finish()
	}
	return report, err
}

// replayRange reads the bounds. Those that the ledger knows are left to the
// engine.
func replayRange(ctx context.Context, kafka processor.Kafka, from, to string) (processor.Range, error) {
	var r processor.Range
	topic, err := processor.InspectTopic(ctx, kafka)
	if err != nil {
		return r, err
	}
	if from == "earliest" {
		r.From = map[int32]int64{}
		for _, p := range topic.Partitions {
			r.From[p.Partition] = p.Start
		}
	} else if r.From, err = parseOffsets("--from", from, "first", topic); err != nil {
		return r, err
	}
	r.To, err = parseOffsets("--to", to, "stored", topic)
	return r, err
}

// parseOffsets reads an offset for all partitions, or offsets by partition;
// none stands for no bound at all.
func parseOffsets(flag, text, none string, topic processor.Topic) (map[int32]int64, error) {
	if text == none {
		return nil, nil
	}
	bounds := map[int32]int64{}
	if offset, err := parseOffset(text); err == nil {
		for _, p := range topic.Partitions {
			bounds[p.Partition] = offset
		}
		return bounds, nil
	}
	for _, item := range splitList(text) {
		left, right, _ := strings.Cut(item, "=")
		partition, err1 := strconv.ParseInt(left, 10, 32)
		offset, err2 := parseOffset(right)
		if err1 != nil || err2 != nil || partition < 0 || partition >= int64(len(topic.Partitions)) {
			return nil, usagef("%s: must be %s, an offset, or partition=offset,… of the %d partitions (got %q)", flag, none, len(topic.Partitions), text)
		}
		bounds[int32(partition)] = offset
	}
	return bounds, nil
}

func parseOffset(text string) (int64, error) {
	offset, err := strconv.ParseUint(text, 10, 63)
	return int64(offset), err
}

// writeReport prints what came of a replay. A dry run tells what would change, and
// of a range in which nothing is new nothing.
func writeReport(a *app, r processor.Report, dryRun bool) {
	for _, p := range r.Partitions {
		if !dryRun || p.Fresh > 0 {
			fmt.Fprintf(a.stdout, "partition %d: offsets %d to %d, %d records, %d new\n", p.Partition, p.From, p.To, p.Records, p.Fresh)
		}
	}
	for _, e := range r.Examples {
		key := ""
		if e.Key != "" {
			key = "key " + e.Key + ": "
		}
		fmt.Fprintf(a.stdout, "%s: %s: %s%s\n", e.Reason, e.Position, key, e.Detail)
	}
	for _, c := range r.Changes {
		fmt.Fprintf(a.stdout, "%s: %d rows would be inserted, %d updated, %d deleted\n", c.Table, c.Inserted, c.Updated, c.Deleted)
	}
	if r.Compacted {
		fmt.Fprintln(a.stdout, compactedText)
	}
	if !dryRun {
		fmt.Fprintln(a.stdout, r)
	}
}

// compactedText says what a compacted topic is not.
const compactedText = "the topic is compacted, and so no history: of each record key only the last record is sure to be kept, and nothing is said of those that are gone"
