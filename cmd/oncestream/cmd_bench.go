package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/processor"
)

// benchOptions are what the command line says.
type benchOptions struct {
	records int64
	sizes   []int
	asJSON  bool
}

func (a *app) benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench FILE",
		Short: "Measure the pipeline on its own services, in a scratch schema",
		Long: `bench measures what the pipeline carries on the brokers and the database of its
file, with its settings. It copies the last records of the topic to a scratch topic,
and runs the pipeline over them in scratch schemas, with empty copies of the tables:
once for each batch size. All of it is dropped at the end, or by the next bench
where this one is killed. No live table, topic or group is written to.

It prints records a second from the first claim to the last COMMIT, how long a
transaction takes (p50, p99), where that time goes, and which batch size to choose:
the smallest one that carries nearly as much as the best.

The role needs CREATE on the database, and the user of the brokers must be allowed
to create topics. Other load on the same services counts: run it twice.`,
		Example: `  oncestream bench payments.yaml
  oncestream bench payments.yaml --records 500000 --sizes 1000,5000,10000
  oncestream bench payments.yaml --json`,
		Args: oneFile,
	}
	flags := configFlags(cmd, "brokers", "topic", "database-url")
	f := cmd.Flags()
	f.Int64Var(&o.records, "records", 100_000, "how many of the topic's last records to copy")
	f.IntSliceVar(&o.sizes, "sizes", []int{500, 2000, 5000, 10_000}, "batch sizes to try (batch.max_records)")
	f.BoolVar(&o.asJSON, "json", false, "print the result as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		return a.bench(cmd.Context(), c, o)
	}
	return cmd
}

func (o *benchOptions) check() error {
	if o.records < 1 {
		return usagef("--records must be positive (got %d)", o.records)
	}
	if len(o.sizes) == 0 || slices.Min(o.sizes) < 1 {
		return usagef("--sizes must be positive numbers, such as 1000,5000 (got %s)", strings.Join(texts(o.sizes), ","))
	}
	return nil
}

func texts(numbers []int) []string {
	list := make([]string, len(numbers))
	for i, n := range numbers {
		list[i] = strconv.Itoa(n)
	}
	return list
}

// bench copies the records, runs the pipeline once for each size, and cleans up
// whatever has happened.
func (a *app) bench(ctx context.Context, c *config, o benchOptions) (err error) {
	s, err := openBench(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	live := c.engine.Kafka
	if err := s.createTopic(ctx, live); err != nil {
		return err
	}
	records, err := processor.CopyRecords(ctx, live, s.publisher, o.records)
	if err != nil {
		return err
	}
	if records == 0 {
		return errors.New("bench: the topic " + live.Topic + " has no record to measure with; send some, or name another with --topic")
	}
	var runs []benchRun
	targets := c.bareTables()
	for _, size := range o.sizes {
		run, err := a.benchOnce(ctx, c, s, targets, size)
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	return a.writeBench(records, runs, o.asJSON)
}

// benchOnce runs the pipeline to the end of the scratch topic, in schemas and a
// group of its own.
func (a *app) benchOnce(ctx context.Context, c *config, s *benchScratch, targets []string, size int) (benchRun, error) {
	place, err := s.place(ctx, targets, c.hasStatement())
	if err != nil {
		return benchRun{}, err
	}
	measured := *c
	watch := newBenchWatch()
	measured.engine = place.engine(c.engine, s.topic)
	measured.engine.Batch.MaxRecords = size
	measured.engine.Hooks = watch.hooks()
	p, err := a.openOnCopies(ctx, &measured, targets)
	if err != nil {
		return benchRun{}, err
	}
	if err := p.RunToEnd(ctx); err != nil {
		return benchRun{}, err
	}
	return watch.result(size), errors.Join(ctx.Err(), s.drop(ctx, place))
}
