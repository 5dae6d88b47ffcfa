package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

func (a *app) letterReplayCommand() *cobra.Command {
	var opts processor.ReplayOptions
	var reveal bool
	var fixes []string
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Handle dead letters after all",
		Long: `replay runs the dead letters that wait for a decision, or those among them that the
flags select, through the same keys and sinks, each in one transaction that also
marks it. It may run while the pipeline does, and twice: a dead letter is handled
once. A parked one is replayed with all that waits behind it, in their order.

A line says what became of each:

  applied     its effect was written
  duplicate   its key had had its effect
  stale       the table holds a newer state, and was left as it is
  gone        somebody else has decided about it meanwhile
  failed      it is still at fault; it stays
  waiting     one before it, of the same record key, stays; so does it
  refused     an upsert or a delete could overwrite what a later message has set;
              it stays, unless --overwrite says that this is right

It exits with 0 where all were handled, and with 1 where some stay.

--fix changes a field of a JSON payload before it is handled, such as
--fix amount=12.50 or --fix buyer.name=Ada; the value is taken as JSON where it is
JSON, else as a text. The payload that was received is kept beside it.`,
		Example: `  oncestream dead-letters replay payments.yaml
  oncestream dead-letters replay payments.yaml --reason foreign_key --dry-run
  oncestream dead-letters replay payments.yaml --id 7 --fix amount=12.50`,
	}
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "change nothing; say what would become of each")
	cmd.Flags().BoolVar(&reveal, "reveal", false, "show what the reasons quote of payloads")
	cmd.Flags().BoolVar(&opts.Overwrite, "overwrite", false, "let an upsert or a delete overwrite what a later message has set")
	cmd.Flags().StringArrayVar(&fixes, "fix", nil, "set field=value in each payload (repeatable)")
	return a.letterCommand(cmd, &letterFlags{}, func(ctx context.Context, c *config, filter offsets.DeadLetterFilter, file string) error {
		fix, err := parseFixes(fixes)
		if err != nil {
			return err
		}
		if fix != nil && !c.decode.plainJSON() {
			return usageError{errors.New("--fix changes JSON, and the payloads of this pipeline are framed for a schema registry")}
		}
		if fix != nil {
			opts.Fix = fix.apply
		}
		return a.replayLetters(ctx, c, filter, opts, reveal, file)
	})
}

func (a *app) replayLetters(ctx context.Context, c *config, filter offsets.DeadLetterFilter, opts processor.ReplayOptions, reveal bool, file string) error {
	p, err := a.openPipeline(ctx, c)
	if err != nil {
		return err
	}
	var outcome letterOutcome
	err = p.ReplayDeadLetters(ctx, filter, opts, func(r processor.Resolved) {
		outcome.add(r)
		writeResolved(a.stdout, r, reveal)
	})
	fmt.Fprintln(a.stdout, outcome.text(opts.DryRun))
	switch {
	case err != nil:
		return err
	case outcome.stay > 0:
		return fmt.Errorf("%d of %s stay: see them with oncestream dead-letters list %s", outcome.stay, countLetters(outcome.all), file)
	}
	return nil
}

func writeResolved(out io.Writer, r processor.Resolved, reveal bool) {
	text := fmt.Sprintf("%d %s %s: %s", r.Letter.ID, r.Letter.Record.Position(), r.Letter.Reason, r.Resolution)
	if r.Err != nil {
		text += ": " + detailText(strings.ReplaceAll(r.Err.Error(), "\n", " "), reveal)
	}
	fmt.Fprintln(out, text)
}

// letterOutcome counts what became of dead letters.
type letterOutcome struct {
	all, stay int
	by        map[processor.Resolution]int
}

func (o *letterOutcome) add(r processor.Resolved) {
	if o.by == nil {
		o.by = map[processor.Resolution]int{}
	}
	o.all++
	o.by[r.Resolution]++
	if r.Err != nil {
		o.stay++
	}
}

// text sums it up, in the order in which the help explains the resolutions.
func (o *letterOutcome) text(dry bool) string {
	var parts []string
	for _, r := range []processor.Resolution{
		processor.ResolutionApplied, processor.ResolutionDuplicate, processor.ResolutionStale, processor.ResolutionGone,
		processor.ResolutionFailed, processor.ResolutionWaiting, processor.ResolutionRefused,
	} {
		if n := o.by[r]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", thousands(n), r))
		}
	}
	text := countLetters(o.all)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if dry {
		text += "; a dry run: nothing was changed"
	}
	return text
}

func (a *app) letterDiscardCommand() *cobra.Command {
	var reason string
	var all bool
	f := &letterFlags{reasonFlag: "code"}
	cmd := &cobra.Command{
		Use:   "discard FILE",
		Short: "Decide that dead letters will never be handled",
		Long: `discard marks the dead letters that the flags select as decided: they will never be
handled. They stay in the ledger with the reason that --reason gives, which is in
words, and for whoever asks later; --code selects by the reason that made them dead
letters. What is parked behind a discarded one is free to be replayed.`,
		Example: `  oncestream dead-letters discard payments.yaml --id 7 --reason "a test of the shop's, see ticket 1234"
  oncestream dead-letters discard payments.yaml --code decode --since 24h --reason "sent by the old app"`,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, in words (required)")
	cmd.Flags().BoolVar(&all, "all", false, "discard all that wait for a decision")
	return a.letterCommand(cmd, f, func(ctx context.Context, c *config, filter offsets.DeadLetterFilter, _ string) error {
		switch {
		case strings.TrimSpace(reason) == "":
			return usageError{errors.New("--reason is required: say why nothing is lost without them")}
		case !all && !f.given():
			return usageError{errors.New("nothing is selected: name them by --id, --code, --partition, --since or --until, or say --all")}
		case all && f.given():
			return usageError{errors.New("--all goes with no other flag that selects")}
		}
		p, err := a.openPipeline(ctx, c)
		if err != nil {
			return err
		}
		n, err := p.DiscardDeadLetters(ctx, filter, reason, func(d offsets.StoredDeadLetter) {
			fmt.Fprintf(a.stdout, "%d %s %s: discarded\n", d.ID, d.Record.Position(), d.Reason)
		})
		fmt.Fprintf(a.stdout, "%s discarded\n", countLetters(n))
		return err
	})
}
