package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
)

// changeFlags are the flags of the commands that change a position.
type changeFlags struct {
	partitions       []int32
	toOffset, toTime string
	beyondFloor      bool
	// environment is for adopt only: the label that the ledger gets.
	environment string

	reason, by  string
	yes, dryRun bool
}

func (f *changeFlags) add(cmd *cobra.Command, toOffset string) {
	flags := cmd.Flags()
	flags.Int32SliceVar(&f.partitions, "partition", nil, "change these partitions only (repeatable, or a list)")
	flags.StringVar(&f.toOffset, "to-offset", "", "the next offset to handle: "+toOffset)
	flags.StringVar(&f.toTime, "to-time", "", "instead of an offset: the first record that is not older than this time, such as 2026-01-31T08:00:00Z")
	flags.StringVar(&f.reason, "reason", "", "why, in words, for whoever asks later (required)")
	flags.StringVar(&f.by, "by", "", "who does it (default user@host)")
	flags.BoolVar(&f.yes, "yes", false, "do not ask; needed where nobody can be asked")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would be done, and change nothing")
}

// check finds what is wrong with the flags themselves.
func (f *changeFlags) check() error {
	switch {
	case strings.TrimSpace(f.reason) == "" && !f.dryRun:
		return usagef("--reason is required: say why, for whoever asks later")
	case f.environment != "" && (f.toOffset != "" || f.toTime != "" || len(f.partitions) > 0):
		return usagef("--environment changes the ledger's label and no position: it goes without --partition, --to-offset and --to-time")
	case f.environment == "" && (f.toOffset == "") == (f.toTime == ""):
		return usagef("one of --to-offset and --to-time is required: where to go on")
	}
	return nil
}

func (f *changeFlags) note() offsets.Note {
	by := f.by
	if by == "" {
		by = whoami()
	}
	return offsets.Note{By: by, Reason: f.reason}
}

// changeCommand makes a command that changes positions.
func (a *app) changeCommand(cmd *cobra.Command, action offsets.Action, f *changeFlags) *cobra.Command {
	cmd.Args = oneFile
	flags := configFlags(cmd, "brokers", "topic", "database-url", "schema")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		target, err := parseTarget(action, f)
		if err != nil {
			return err
		}
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		if f.environment != "" {
			return a.relabel(cmd.Context(), c, f)
		}
		return a.changeOffsets(cmd.Context(), c, action, target, f)
	}
	return cmd
}

func (a *app) rewindCommand() *cobra.Command {
	f := &changeFlags{}
	cmd := &cobra.Command{
		Use:   "rewind FILE",
		Short: "Read records again",
		Long: `rewind sets positions back. The records from there on are read again; what had its
effect is a duplicate, and has none again: to repeat effects, give the pipeline
another handler.

Without --partition it is for all partitions, and leaves those alone that stand at
the target or before it. --to-offset stored opens what is halted where it stands,
once its cause is mended. Where keys were purged (keys.retain), records would have
their effects again: a rewind to there is refused without --beyond-floor.`,
		Example: `  oncestream offsets rewind payments.yaml --to-time 2026-01-31T08:00:00Z --reason "left out by mistake"
  oncestream offsets rewind payments.yaml --partition 3 --to-offset 1200 --reason "ticket 1234" --yes
  oncestream offsets rewind payments.yaml --to-offset 0=100,3=250 --dry-run`,
	}
	f.add(cmd, "a number, earliest, latest, stored, or offsets by partition such as 0=100,3=earliest")
	cmd.Flags().BoolVar(&f.beyondFloor, "beyond-floor", false, "go back to where keys were purged, too")
	return a.changeCommand(cmd, offsets.Rewind, f)
}

func (a *app) skipCommand() *cobra.Command {
	f := &changeFlags{}
	cmd := &cobra.Command{
		Use:   "skip FILE",
		Short: "Leave records out",
		Long: `skip sets positions forward. The records between are never handled; the account of
the partition says how many offsets that were. A position that the pipeline has
passed meanwhile is refused.

Without --partition it is for all partitions, and leaves those alone that stand at
the target or behind it. --to-offset next leaves out the one record at which a
partition is halted; look with "oncestream offsets show" before.`,
		Example: `  oncestream offsets skip payments.yaml --partition 3 --to-offset next --reason "ticket 1234"
  oncestream offsets skip payments.yaml --to-offset latest --reason "the backlog is of no use any more"
  oncestream offsets skip payments.yaml --partition 3 --to-offset earliest --reason "removed by retention"`,
	}
	f.add(cmd, "a number, next (one record), earliest, latest, or offsets by partition such as 0=100,3=next")
	return a.changeCommand(cmd, offsets.Skip, f)
}

func (a *app) adoptCommand() *cobra.Command {
	f := &changeFlags{}
	cmd := &cobra.Command{
		Use:   "adopt FILE",
		Short: "Go on with another topic, or in another environment",
		Long: `adopt takes positions over to the topic that is there now: one that was deleted and
created again, or that of another cluster. The keys stay: an event whose key was
seen in the old topic is a duplicate in the new one. A key that is made of the
position (key.position) holds the topic's id, and is new.

Without --partition it is for all partitions whose position is of another topic.
--to-offset stored goes on at the same number, for a copy that keeps the offsets.

With --environment it changes no position: it gives the ledger another label, as
after a database was cloned. The label is compared at each start of a pipeline.`,
		Example: `  oncestream offsets adopt payments.yaml --to-offset earliest --reason "the topic was created again"
  oncestream offsets adopt payments.yaml --partition 3 --to-offset earliest --reason "ticket 1234"
  oncestream offsets adopt payments.yaml --environment staging --reason "a clone of Monday's backup"`,
	}
	f.add(cmd, "a number, earliest, latest, stored, or offsets by partition such as 0=100,3=earliest")
	cmd.Flags().StringVar(&f.environment, "environment", "", "give the ledger this label")
	return a.changeCommand(cmd, offsets.Adopt, f)
}

// relabel gives the ledger another label.
func (a *app) relabel(ctx context.Context, c *config, f *changeFlags) error {
	return withStoredLabel(ctx, c, func(s labelled) error {
		fmt.Fprintf(a.stdout, "schema %s: environment %s becomes %s\n", c.engine.Postgres.Schema, orDash(s.label), f.environment)
		if ok, err := a.agreed(f); !ok {
			return err
		}
		if _, err := s.ledger.AdoptEnvironment(ctx, s.conn, f.environment, f.note()); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "done: pipelines start here with environment: %s\n", f.environment)
		return nil
	})
}
