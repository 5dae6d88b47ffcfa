package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables"
)

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Look at idempotency keys, and purge old ones",
		Long: `keys looks at the idempotency keys that a pipeline remembers: where and when one
was processed first, and what they cost. With keys.retain in the pipeline file,
"oncestream run" purges the old ones by itself.`,
		Example: `  oncestream keys show evt_1 payments.yaml
  oncestream keys stats payments.yaml`,
		Args: a.noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.keysShowCommand(), a.keysPurgeCommand(), a.keysStatsCommand())
	return cmd
}

// withLedger runs do with the ledger of the pipeline file, on a connection of
// its own.
func withLedger(ctx context.Context, c *config, do func(*pgx.Conn, *offsets.Ledger) error) error {
	return withConn(ctx, c.engine.Postgres.URL, func(conn *pgx.Conn) error {
		if err := tables.Check(ctx, conn, c.engine.Postgres.Schema); err != nil {
			return err
		}
		return do(conn, offsets.New(offsets.Options{
			Schema: c.engine.Postgres.Schema, Group: c.name, Topic: c.engine.Kafka.Topic, Handler: c.handler,
		}))
	})
}

func (a *app) keysStatsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats FILE",
		Short: "Show what the keys cost",
		Long: `stats shows how large the table of the keys and its index are, how many keys each
handler has and how old its oldest one is, and up to which offset keys of the
pipeline were purged. A large table is not read as a whole: the numbers of keys
are then estimates, from a sample of 8 MiB.`,
		Example: `  oncestream keys stats payments.yaml
  oncestream keys stats payments.yaml --json | jq .index_bytes`,
		Args: oneFile,
	}
	flags := configFlags(cmd, "topic", "database-url", "schema")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		s, err := readKeyStats(cmd.Context(), c)
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(a.stdout).Encode(s)
		}
		return s.write(a.stdout, c.retainText())
	}
	return cmd
}

// keyStats is what "keys stats" shows.
type keyStats struct {
	TableBytes int64          `json:"table_bytes"`
	IndexBytes int64          `json:"index_bytes"`
	Exact      bool           `json:"exact"`
	Handlers   []handlerStats `json:"handlers"`
	Handler    string         `json:"handler"`
	Retain     string         `json:"retain,omitempty"`
	Floors     []floorStats   `json:"floors"`
}

type handlerStats struct {
	Handler string    `json:"handler"`
	Keys    int64     `json:"keys"`
	Oldest  time.Time `json:"oldest"`
}

// floorStats is up to where keys of a partition were purged.
type floorStats struct {
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	PurgedAt  time.Time `json:"purged_at"`
}

func readKeyStats(ctx context.Context, c *config) (keyStats, error) {
	s := keyStats{Handler: c.handler, Handlers: []handlerStats{}, Floors: []floorStats{}}
	if c.engine.Keys.Retain > 0 {
		s.Retain = age(c.engine.Keys.Retain).String()
	}
	err := withLedger(ctx, c, func(conn *pgx.Conn, ledger *offsets.Ledger) error {
		stats, err := ledger.KeyStats(ctx, conn)
		if err != nil {
			return err
		}
		s.TableBytes, s.IndexBytes, s.Exact = stats.TableBytes, stats.IndexBytes, stats.Exact
		for _, h := range stats.Handlers {
			s.Handlers = append(s.Handlers, handlerStats{h.Handler, h.Keys, h.Oldest.UTC()})
		}
		floors, err := ledger.Floors(ctx, conn)
		for _, f := range floors {
			s.Floors = append(s.Floors, floorStats{f.Partition, f.Offset, f.PurgedAt.UTC()})
		}
		return err
	})
	return s, err
}

// retainText says how long keys are kept.
func (c *config) retainText() string {
	if c.engine.Keys.Retain == 0 {
		return "for ever"
	}
	return "for " + age(c.engine.Keys.Retain).String()
}

func (s *keyStats) write(out io.Writer, retain string) error {
	about := "about "
	if s.Exact {
		about = ""
	}
	fmt.Fprintf(out, "table %s, index %s; handler %s keeps its keys %s\n", bytesText(s.TableBytes), bytesText(s.IndexBytes), s.Handler, retain)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HANDLER\tKEYS\tOLDEST")
	for _, h := range s.Handlers {
		fmt.Fprintf(w, "%s\t%s%d\t%s%s\n", h.Handler, about, h.Keys, about, h.Oldest.Format(time.RFC3339))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(s.Floors) == 0 {
		fmt.Fprintf(out, "no key of handler %s was ever purged\n", s.Handler)
	}
	for _, f := range s.Floors {
		fmt.Fprintf(out, "partition %d: keys up to offset %d were purged, last at %s\n", f.Partition, f.Offset, f.PurgedAt.Format(time.RFC3339))
	}
	return nil
}

// bytesText writes a number of bytes for people.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") + " " + units[i]
}
