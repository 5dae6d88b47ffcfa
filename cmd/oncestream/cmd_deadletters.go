package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
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
		return withLetters(ctx, c, func(conn *pgx.Conn, ledger *offsets.Ledger, now time.Time) error {
			shown := 0
			for d, err := range ledger.DeadLetters(ctx, conn, filter) {
				if err != nil {
					return err
				}
				writeLetter(a.stdout, d, now, reveal)
				shown++
			}
			if shown == 0 {
				fmt.Fprintln(a.stdout, countLetters(0))
			}
			return nil
		})
	})
}

// withLetters calls do with the ledger of the pipeline, registered, and the
// database's time.
func withLetters(ctx context.Context, c *config, do func(conn *pgx.Conn, ledger *offsets.Ledger, now time.Time) error) error {
	return withLedger(ctx, c, func(conn *pgx.Conn, ledger *offsets.Ledger) error {
		if err := ledger.Register(ctx, conn); err != nil {
			return err
		}
		var now time.Time
		if err := conn.QueryRow(ctx, "select now()").Scan(&now); err != nil {
			return fmt.Errorf("ask the database for its time: %w", err)
		}
		return do(conn, ledger, now)
	})
}

func countLetters[N int | int64](n N) string {
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
