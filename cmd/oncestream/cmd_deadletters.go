package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables"
)

func (a *app) deadLettersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "See and decide about messages that were set aside",
		Long: `dead-letters shows the messages that could not be handled, and what becomes of
them: replay handles them after all, discard decides that nothing will.

Payloads are shown with --reveal only, and what a detail quotes of them as "…".

Dead letters are rows of the ledger, written in the transaction that passes
their records. Producing them to a Kafka topic too, with the usual error headers,
waits for the outbox, which is part of a later version.`,
		Example: `  oncestream dead-letters list payments.yaml
  oncestream dead-letters replay payments.yaml --id 7 --fix amount=12.50`,
		Args: a.noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.letterListCommand(), a.letterShowCommand(), a.letterReplayCommand(), a.letterDiscardCommand(), a.letterExportCommand())
	return cmd
}

// letterCommand makes a command on the dead letters of a pipeline file; do is
// given the configuration, the filter of the flags, and the file's name.
func (a *app) letterCommand(cmd *cobra.Command, f *letterFlags, do func(ctx context.Context, c *config, filter offsets.DeadLetterFilter, file string) error) *cobra.Command {
	cmd.Args = oneFile
	flags := configFlags(cmd, "brokers", "topic", "database-url", "schema")
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := f.filter(time.Now())
		if err != nil {
			return err
		}
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, filter, args[0])
	}
	return cmd
}

func (a *app) letterListCommand() *cobra.Command {
	f := &letterFlags{states: true, limit: 1000}
	return a.letterCommand(&cobra.Command{
		Use:   "list FILE",
		Short: "List dead letters",
		Long: `list shows a line for each dead letter that waits for a decision, or that the
flags select: where it is in the topic, why it was set aside, how old the decision
is, and how large the payload. Those that are parked hold up the later records of
their record key.`,
		Example: `  oncestream dead-letters list payments.yaml
  oncestream dead-letters list payments.yaml --reason value_range,not_null --since 24h
  oncestream dead-letters list payments.yaml --state discarded`,
	}, f, func(ctx context.Context, c *config, filter offsets.DeadLetterFilter, _ string) error {
		limit := filter.Limit
		filter.Limit++ // to see whether there are more
		letters, now, err := readLetters(ctx, c, filter)
		if err != nil {
			return err
		}
		more := len(letters) > limit
		return writeLetterList(a.stdout, letters[:min(len(letters), limit)], now, more)
	})
}

func (a *app) letterShowCommand() *cobra.Command {
	var reveal bool
	f := &letterFlags{states: true, anyState: true}
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show all that is known of dead letters",
		Long: `show prints each dead letter that the flags select, in any state, with its headers,
the reason in words and what was decided. The payload is shown with --reveal only;
without it, what the reason quotes of a payload is shown as "…".`,
		Example: `  oncestream dead-letters show payments.yaml --id 7
  oncestream dead-letters show payments.yaml --id 7,8 --reveal`,
	}
	cmd.Flags().BoolVar(&reveal, "reveal", false, "show payloads")
	return a.letterCommand(cmd, f, func(ctx context.Context, c *config, filter offsets.DeadLetterFilter, _ string) error {
		letters, now, err := readLetters(ctx, c, filter)
		if err != nil {
			return err
		}
		if len(letters) == 0 {
			fmt.Fprintln(a.stdout, countLetters(0))
		}
		for i := range letters {
			writeLetter(a.stdout, &letters[i], now, reveal)
		}
		return nil
	})
}

// readLetters returns the dead letters, and the database's time.
func readLetters(ctx context.Context, c *config, filter offsets.DeadLetterFilter) (letters []offsets.StoredDeadLetter, now time.Time, err error) {
	err = withConn(ctx, c.engine.Postgres.URL, func(conn *pgx.Conn) error {
		if err := tables.Check(ctx, conn, c.engine.Postgres.Schema); err != nil {
			return err
		}
		if err := conn.QueryRow(ctx, "select now()").Scan(&now); err != nil {
			return fmt.Errorf("ask the database for its time: %w", err)
		}
		ledger := offsets.New(offsets.Options{Schema: c.engine.Postgres.Schema, Group: c.name, Topic: c.engine.Kafka.Topic, Handler: c.handler})
		if err := ledger.Register(ctx, conn); err != nil {
			return err
		}
		letters, err = ledger.DeadLetters(ctx, conn, filter)
		return err
	})
	return letters, now, err
}

func writeLetterList(out io.Writer, letters []offsets.StoredDeadLetter, now time.Time, more bool) error {
	if len(letters) > 0 {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tPOSITION\tREASON\tSQLSTATE\tCOLUMN\tCONSTRAINT\tAGE\tSIZE\tSTATE")
		for i := range letters {
			d := &letters[i]
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, d.Record.Position(), d.Reason, orDash(d.SQLState),
				orDash(d.Column), orDash(d.Constraint), ageText(now.Sub(d.CreatedAt)), sizeText(d.ValueSize), stateText(d))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	text := countLetters(len(letters))
	if more {
		text += ", and there are more: --limit shows them"
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

func countLetters(n int) string {
	switch n {
	case 0:
		return "no dead letters"
	case 1:
		return "1 dead letter"
	}
	return thousands(n) + " dead letters"
}

// ageText writes an age in the largest unit that makes a whole number of at
// least 2 of it, or 1.
func ageText(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", max(0, d/time.Second))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

func sizeText(n int64) string {
	if n < 0 {
		return "tombstone"
	}
	return fmt.Sprintf("%d B", n)
}

func stateText(d *offsets.StoredDeadLetter) string {
	if d.Parked && d.State == offsets.StateDead {
		return d.State + ", parked"
	}
	return d.State
}
