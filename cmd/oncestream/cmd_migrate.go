package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/schema/tables"
)

func (a *app) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make or upgrade the ledger's tables",
		Long: `migrate makes the tables of the ledger, in a schema of their own, or brings them
up to the version of this program. It goes forward only. Programs that migrate
at once take turns. It must reach the server itself: a pooler is refused. The
tables of the effects are yours and are not touched.`,
		Example: `  oncestream migrate up payments.yaml
  oncestream migrate status --database-url postgres://127.0.0.1/app`,
		Args: a.noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.migrateSubcommand("up", "Bring the tables up to this program's version",
			"up applies the migrations that are missing, each in a transaction of its own, and\nprints them. Where none is missing it changes nothing.", a.migrateUp),
		a.migrateSubcommand("status", "Show which migrations are applied",
			"status lists the migrations, and since when each is applied. It exits with 1 where\none is missing or unknown to this program.", a.migrateStatus),
	)
	return cmd
}

func (a *app) migrateSubcommand(use, short, long string, do func(context.Context, *pgx.ConnConfig, string) error) *cobra.Command {
	var url, schema string
	cmd := &cobra.Command{
		Use:     use + " [FILE]",
		Short:   short,
		Long:    long + "\n\nThe database and the schema are those of the pipeline file FILE, or of the flags.",
		Example: "  oncestream migrate " + use + " payments.yaml\n  oncestream migrate " + use + " --database-url postgres://127.0.0.1/app --schema oncestream",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) <= 1 {
				return nil
			}
			return oneFile(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, schema, err := a.migrateTarget(args, url, schema)
			if err != nil {
				return err
			}
			return do(cmd.Context(), cfg, schema)
		},
	}
	cmd.Flags().StringVar(&url, "database-url", "", "the database (environment: DATABASE_URL)")
	cmd.Flags().StringVar(&schema, "schema", "", `the schema of the ledger's tables (environment: ONCESTREAM_SCHEMA; default "oncestream")`)
	return cmd
}

// migrateTarget finds the database and the schema, in the order of a pipeline
// file: flags, environment, file.
func (a *app) migrateTarget(args []string, url, schema string) (*pgx.ConnConfig, string, error) {
	if len(args) == 1 {
		c, err := loadConfig(args[0], map[string]string{"database-url": url, "schema": schema}, a.env)
		if err != nil {
			return nil, "", err
		}
		cfg, err := parseURL(c.engine.Postgres.URL)
		return cfg, c.engine.Postgres.Schema, err
	}
	url = a.setting(url, "DATABASE_URL", "")
	if url == "" {
		return nil, "", usagef("a pipeline file, --database-url or DATABASE_URL is required")
	}
	cfg, err := parseURL(url)
	return cfg, a.setting(schema, "ONCESTREAM_SCHEMA", "oncestream"), err
}

func (a *app) migrateUp(ctx context.Context, cfg *pgx.ConnConfig, schema string) error {
	applied, err := tables.Migrate(ctx, cfg, schema)
	for _, m := range applied {
		fmt.Fprintf(a.stdout, "applied %s in %s\n", m.Name, m.Took.Round(time.Millisecond))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "the tables in schema %q are at version %d\n", schema, tables.Version())
	return err
}

func (a *app) migrateStatus(ctx context.Context, cfg *pgx.ConnConfig, schema string) error {
	return withConfig(ctx, cfg, func(conn *pgx.Conn) error {
		list, err := tables.Status(ctx, conn, schema)
		if err != nil {
			return err
		}
		if err := a.printMigrations(list); err != nil {
			return err
		}
		return tables.Check(ctx, conn, schema)
	})
}

func (a *app) printMigrations(list []tables.Migration) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "VERSION\tAPPLIED\tNAME")
	for _, m := range list {
		fmt.Fprintf(w, "%d\t%s\t%s\n", m.Version, appliedText(m), nameText(m))
	}
	return w.Flush()
}

func appliedText(m tables.Migration) string {
	if m.Pending() {
		return "pending"
	}
	return m.AppliedAt.UTC().Format(time.RFC3339)
}

func nameText(m tables.Migration) string {
	if m.Name == "" {
		return "unknown to this program: upgrade the binary"
	}
	return m.Name
}
