package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
)

func (a *app) keysPurgeCommand() *cobra.Command {
	var olderThan string
	cmd := &cobra.Command{
		Use:   "purge FILE",
		Short: "Purge old keys now",
		Long: `purge deletes the keys of the pipeline's handler that are older than keys.retain,
or than --older-than, by the database's clock. It goes once around the table, a
few thousand keys a transaction, and may be stopped at any time; the group may go
on meanwhile.

An event that a producer sends again after its key was purged has its effect
again. What the broker delivers again has not: there the offset decides. A replay
below the purged offsets is refused without --beyond-floor.`,
		Example: `  oncestream keys purge payments.yaml
  oncestream keys purge payments.yaml --older-than 90d`,
		Args: oneFile,
	}
	flags := configFlags(cmd, "topic", "database-url", "schema")
	cmd.Flags().StringVar(&olderThan, "older-than", "", "the age of what is purged, such as 30d or 12h (default: keys.retain of the file)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		retain := age(c.engine.Keys.Retain)
		if olderThan != "" {
			var ok bool
			if retain, ok = parseAge(olderThan); !ok {
				return usagef("--older-than: must be a duration such as 30d or 12h (got %q)", olderThan)
			}
		}
		if retain == 0 {
			return usagef("keys.retain is not set in %s, so keys are kept for ever: set it, or say --older-than", c.file)
		}
		return a.purgeKeys(cmd.Context(), c, retain)
	}
	return cmd
}

// purgeKeys goes once around the table.
func (a *app) purgeKeys(ctx context.Context, c *config, retain age) error {
	return withLedger(ctx, c, func(conn *pgx.Conn, ledger *offsets.Ledger) error {
		if err := ledger.CheckEnvironment(ctx, conn, c.engine.Environment); err != nil {
			return err
		}
		if err := ledger.Register(ctx, conn); err != nil {
			return err
		}
		var bar *progress
		for keys, passed := int64(0), int64(0); ; {
			purged, err := ledger.Purge(ctx, conn, offsets.Purge{Retain: time.Duration(retain)})
			if err != nil {
				return err
			}
			if purged.Busy {
				if err := pause(ctx, busyPause); err != nil {
					return err
				}
				continue
			}
			keys, passed = keys+purged.Keys, passed+purged.Blocks
			if bar == nil {
				bar = a.newProgress("looked through blocks", purged.Table)
			}
			bar.set(min(passed, purged.Table))
			if passed >= purged.Table {
				bar.finish()
				fmt.Fprintf(a.stdout, "purged %d keys of handler %s that were older than %s\n", keys, c.handler, retain)
				return nil
			}
		}
	})
}

// busyPause is how long to leave the purge to a process that is at it.
const busyPause = 100 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
