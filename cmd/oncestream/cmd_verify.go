package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/processor"
)

// errNotProven ends a verification that has found something; what it printed says
// what.
var errNotProven = errors.New("the pipeline is not idempotent")

// verifyFlags are what the command line says.
type verifyFlags struct {
	from, to, sample string
	asJSON, clean    bool
	opts             processor.VerifyOptions
}

func (a *app) verifyCommand() *cobra.Command {
	var v verifyFlags
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Prove that the pipeline is idempotent and survives crashes",
		Long: `verify runs records of the topic through the pipeline again and again, in schemas
that it creates, with copies of the tables, and drops at the end. It joins no group
and writes to no table that is live. It proves, each for itself:

  again         a second time, at the same positions and then at new ones, nothing
                has an effect and no table changes
  resume        the tables are the same however batches are cut, and with the
                connection cut before, within and after each send of the
                transaction, COMMIT included
  hidden input  the tables are the same under another clock, with other numbers
                from sequences, and with other random numbers; columns that differ
                are named
  order         the tables are the same when records of different record keys come
                in another order (with --order)
  natural       no demand, but told: which tables stay as they are even if no key
                is remembered

It takes the last records of the topic (--records), or what --from and --to bound.
Tables are found by their bare names. Those that the sinks write to are copied
without rows, and tables that their foreign keys refer to with them; a pipeline
with a statement of its own (sql) has all tables of the search path copied, unless
--tables or --with-rows name those that it needs. Where effects depend on what is
in a table, say --with-rows.

It exits with 0 where all is proven, with 3 where something is not.`,
		Example: `  oncestream verify payments.yaml
  oncestream verify payments.yaml --records 100000 --sample 10%
  oncestream verify payments.yaml --exclude payments.stored_at --json > certificate.json
  oncestream verify payments.yaml --clean      drop what a killed verify has left`,
		Args: oneFile,
	}
	flags := configFlags(cmd, "brokers", "topic", "database-url")
	v.define(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		return a.verify(cmd.Context(), c, args[0], &v)
	}
	return cmd
}

func (v *verifyFlags) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int64Var(&v.opts.Records, "records", 10_000, "how many of the topic's last records to take")
	f.StringVar(&v.from, "from", "last", "where to begin: last (as --records says), earliest, or offsets such as 0=100,3=250")
	f.StringVar(&v.to, "to", "end", "where to end: end, or offsets")
	f.StringVar(&v.sample, "sample", "100%", "the share of the keys to take; of a key that is taken no record is missing")
	f.IntVar(&v.opts.MaxBytes, "max-bytes", 256<<20, "how many bytes of records to keep in memory at most")
	f.StringSliceVar(&v.opts.Exclude, "exclude", nil, "a column that may differ, as table.column; repeatable")
	f.StringSliceVar(&v.opts.Tables, "tables", nil, "tables to copy besides those that the sinks name; repeatable")
	f.StringSliceVar(&v.opts.WithRows, "with-rows", nil, "tables to copy with their rows; repeatable")
	f.BoolVar(&v.opts.OncePerPosition, "allow-position", false, "do not try new positions: the producer never sends a message twice")
	f.BoolVar(&v.opts.Order, "order", false, "try another order of records of different record keys, too")
	f.Uint64Var(&v.opts.Seed, "seed", 1, "what is drawn by lot")
	f.BoolVar(&v.asJSON, "json", false, "print a certificate, as JSON")
	f.BoolVar(&v.clean, "clean", false, "only drop the schemas that a killed verify has left")
}

func (a *app) verify(ctx context.Context, c *config, file string, v *verifyFlags) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return usagef("read the pipeline file: %w", err)
	}
	if v.opts.Sample, err = parseShare(v.sample); err != nil {
		return err
	}
	targets := c.bareTables()
	p, err := a.openOnCopies(ctx, c, targets)
	if err != nil {
		return err
	}
	if v.clean {
		dropped, err := p.CleanScratch(ctx)
		for _, name := range dropped {
			fmt.Fprintln(a.stdout, "dropped", name)
		}
		return err
	}
	if !c.hasStatement() || len(v.opts.Tables)+len(v.opts.WithRows) > 0 {
		v.opts.Tables = append(targets, v.opts.Tables...)
	}
	r, err := v.bounds(ctx, c.engine.Kafka)
	if err != nil {
		return err
	}
	verdict, err := a.verifyShown(ctx, p, r, v.opts)
	if err != nil {
		return err
	}
	if err := a.writeVerdict(verdict, v.asJSON, c.file, text); err != nil {
		return err
	}
	if verdict.Outcome != processor.Proven {
		return errNotProven
	}
	return nil
}

// verifyShown verifies with a progress.
func (a *app) verifyShown(ctx context.Context, p *processor.Processor, r processor.Range, o processor.VerifyOptions) (processor.Verdict, error) {
	var bar *progress
	o.Progress = func(done, total int64) {
		if bar == nil {
			bar = a.newProgress("verified", total)
		}
		bar.set(done)
	}
	verdict, err := p.Verify(ctx, r, o)
	if bar != nil && err == nil {
		bar.finish()
	}
	return verdict, err
}

// bounds reads --from and --to.
func (v *verifyFlags) bounds(ctx context.Context, kafka processor.Kafka) (processor.Range, error) {
	var r processor.Range
	if v.from == "last" && v.to == "end" {
		return r, nil
	}
	topic, err := processor.InspectTopic(ctx, kafka)
	if err != nil {
		return r, err
	}
	if v.from == "earliest" {
		r.From = map[int32]int64{}
		for _, p := range topic.Partitions {
			r.From[p.Partition] = p.Start
		}
	} else if r.From, err = parseOffsets("--from", v.from, "last", topic); err != nil {
		return r, err
	}
	r.To, err = parseOffsets("--to", v.to, "end", topic)
	return r, err
}

// parseShare reads 10% or 0.1.
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share <= 1) {
		return 0, usagef("--sample: must be a share above 0%% and up to 100%%, such as 10%% (got %q)", text)
	}
	return share, nil
}
