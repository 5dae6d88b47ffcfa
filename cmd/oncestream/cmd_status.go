package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/processor"
)

func (a *app) statusCommand() *cobra.Command {
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use:   "status FILE",
		Short: "Show how far a pipeline is",
		Long: `status shows for each partition who holds it, the next offset to handle, the end
of the log, the lag between the two, and the account of what has passed:
processed records, the duplicates among them by their cause, and the dead letters
that are neither replayed nor discarded. The lag counts offsets up to the last
stable one: what belongs to an open Kafka transaction is not waited for.

DRIFT is Kafka's own offset of the group less the stored one. Kafka's is told
behind and never used; above 0 the database went back, or somebody moved the
group. RETENTION is the time until retention removes the next record, "none"
where nothing is unread, "lost" where it has removed records already. It is an
estimate; the README says what it rests on.

A halted partition says why, and with which command a person decides. What holds
back the database's vacuum for longer than watch.transaction is named.`,
		Example: `  oncestream status payments.yaml
  oncestream status payments.yaml --watch
  oncestream status payments.yaml --json | jq .total.lag`,
		Args: oneFile,
	}
	flags := configFlags(cmd, "brokers", "topic", "database-url", "schema")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	cmd.Flags().BoolVar(&watch, "watch", false, "print it again every two seconds until stopped")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		lookout, err := processor.OpenLookout(c.engine.Kafka)
		if err != nil {
			return err
		}
		defer lookout.Close()
		show := func() error {
			s, err := observe(cmd.Context(), c, lookout, everyPartition)
			if err != nil {
				return err
			}
			return a.showStatus(s, args[0], asJSON, watch)
		}
		if watch {
			return every(cmd.Context(), 2*time.Second, show)
		}
		return show()
	}
	return cmd
}

// every calls do until ctx ends or do fails.
func every(ctx context.Context, pause time.Duration, do func() error) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		if err := do(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (a *app) showStatus(s status, file string, asJSON, watch bool) error {
	s.name(file)
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(s)
	}
	if watch && isTerminal(a.stdout) {
		fmt.Fprint(a.stdout, "\x1b[H\x1b[2J") // to the corner, and clear
	}
	return s.write(a.stdout)
}
