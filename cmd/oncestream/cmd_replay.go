package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/processor"
)

func (a *app) replayCommand() *cobra.Command {
	var from, to string
	var beyondFloor bool
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Prove that nothing is missing",
		Long: `replay reads again what the group has read, under the same handler, and expects
that every record has had its effect. It runs the effects of those that have not
inside a transaction that is rolled back: it changes nothing, whatever it finds.

It exits with 0 where nothing was new, with 3 where something was, and names the
first few of them. The group may go on meanwhile.

--from and --to bound what is read: an offset for all partitions, or offsets by
partition such as 0=100,3=250. Where keys were purged (keys.retain), a missing one
says nothing: a range that begins there is refused, unless --beyond-floor says that
its records may show as new.`,
		Example: `  oncestream replay payments.yaml
  oncestream replay payments.yaml --from earliest
  oncestream replay payments.yaml --from 0=1000 --to 0=2000`,
		Args: oneFile,
	}
	flags := configFlags(cmd, "brokers", "topic", "database-url", "schema")
	cmd.Flags().StringVar(&from, "from", "first", "where to begin: first (where the group began), earliest (what the log still holds), or offsets")
	cmd.Flags().StringVar(&to, "to", "stored", "where to end: stored (how far the group is), or offsets")
	cmd.Flags().BoolVar(&beyondFloor, "beyond-floor", false, "begin where keys were purged too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		return a.replay(cmd.Context(), c, from, to, beyondFloor)
	}
	return cmd
}

func (a *app) replay(ctx context.Context, c *config, from, to string, beyondFloor bool) error {
	p, err := a.openPipeline(ctx, c)
	if err != nil {
		return err
	}
	r, err := replayRange(ctx, c.engine.Kafka, from, to)
	if err != nil {
		return err
	}
	r.BeyondFloor = beyondFloor
	report, err := a.replayShown(ctx, p, r)
	if err != nil {
		return err
	}
	writeReport(a, report)
	if !report.Clean() {
		return fmt.Errorf("%w: %d, and %d at fault", errNew, report.Fresh, report.Faults)
	}
	return nil
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

// writeReport prints what came of a replay.
func writeReport(a *app, r processor.Report) {
	for _, p := range r.Partitions {
		fmt.Fprintf(a.stdout, "partition %d: offsets %d to %d, %d records, %d new\n", p.Partition, p.From, p.To, p.Records, p.Fresh)
	}
	for _, e := range r.Examples {
		fmt.Fprintf(a.stdout, "%s: %s: key %s: %s\n", e.Reason, e.Position, e.Key, e.Detail)
	}
	fmt.Fprintln(a.stdout, r)
}
