package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/processor/processortest/check"
	"github.com/oncestream/oncestream/processor/processortest/torture"
)

// errTorture ends a run that has violated an invariant; its report says the rest.
var errTorture = errors.New("the run violates an invariant")

func (a *app) tortureCommand() *cobra.Command {
	var o torture.Options
	var list bool
	cmd := &cobra.Command{
		Use:   "torture",
		Short: "Do everything to this program that can go wrong, and check what is left",
		Long: `torture starts a PostgreSQL, a Kafka and several processes of this very program,
sends transfers of money, with repeats, poison and aborted transactions among
them, and lets faults strike: processes are killed and stopped, connections cut
at COMMIT, servers restarted, members join and leave. Then everything is healed,
what is left is handled, and the invariants are judged: nothing lost, nothing
doubled, every balance exact to the cent, and whatever was bad a dead letter.

The folder of the run keeps the history, the report and every process's log.
With the same seed the same is sent and the same faults strike, in their order.
A history can be judged again: oncestream torture check FILE.

It needs no services and leaves none. Exit codes: 0 every invariant held and every
fault has struck, 3 an invariant was violated, 1 the run could not be made.`,
		Example: `  oncestream torture --for 2m
  oncestream torture --seed 42 --for 10m --broker kafka --report ./report
  oncestream torture --faults kill,commit-cut-after --for 30s
  oncestream torture --faults log-cut,leader-kill,kill --broker kafka3 --for 2m
  oncestream torture --list
  oncestream torture check ./report/history.jsonl`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.Uint64Var(&o.Seed, "seed", 1, "decides what is sent and which faults strike")
	f.DurationVar(&o.For, "for", time.Minute, "how long faults strike")
	f.StringSliceVar(&o.Faults, "faults", nil, "the faults to make (default all that can be made here; see --list)")
	f.StringVar(&o.Broker, "broker", "kfake", "kfake, a Kafka in this process, kafka, a real one (Docker, or Java 17 and Maven), or kafka3, three small ones")
	f.IntVar(&o.Workers, "workers", 3, "how many processes")
	f.IntVar(&o.Partitions, "partitions", 6, "how many partitions the topic has")
	f.IntVar(&o.Rate, "rate", 1000, "how many records are sent a second")
	f.DurationVar(&o.Limit, "limit", 2*time.Minute, "how long what is left may take once everything has healed")
	f.StringVar(&o.Folder, "report", "", "the folder for the history, the report and the logs (default a new temporary folder)")
	f.BoolVar(&list, "list", false, "list the faults and stop")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if list {
			a.listFaults()
			return nil
		}
		o.Say = func(format string, args ...any) { fmt.Fprintf(a.stderr, format+"\n", args...) }
		o.Environment = a.plainEnvironment()
		result, err := torture.Run(cmd.Context(), o)
		if err != nil {
			return err
		}
		return a.tellTorture(result)
	}
	cmd.AddCommand(a.tortureCheckCommand())
	return cmd
}

func (a *app) tortureCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "check HISTORY",
		Short:   "Judge the history of a run again",
		Long:    "check reads the history of a run and judges the invariants, without any service.",
		Example: "  oncestream torture check ./report/history.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			history, err := check.Read(file)
			if err != nil {
				return err
			}
			return a.tellVerdicts(check.Judge(history))
		},
	}
}

func (a *app) listFaults() {
	for _, f := range torture.Faults() {
		more := ""
		switch {
		case f.Why != "":
			more = "\n" + strings.Repeat(" ", 27) + "not in the schedule: " + f.Why
		case f.Cluster:
			more = " (needs --broker kafka3)"
		case f.Real:
			more = " (needs --broker kafka or kafka3)"
		case f.Fake:
			more = " (needs --broker kfake)"
		case f.Needs != "":
			more = " (needs " + f.Needs + ")"
		}
		fmt.Fprintf(a.stdout, "%2d  %-22s %s%s\n", f.Row, f.Name, f.What, more)
	}
}

// tellTorture prints what came of a run.
func (a *app) tellTorture(r torture.Result) error {
	type count struct{ made, struck int }
	counts := map[string]*count{}
	for _, f := range r.History.Faults {
		c := counts[f.Kind]
		if c == nil {
			c = &count{}
			counts[f.Kind] = c
		}
		c.made++
		if f.Struck {
			c.struck++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(a.stdout, "%-22s made %d times, struck %d times\n", name, counts[name].made, counts[name].struck)
	}
	err := a.tellVerdicts(r.Verdicts)
	fmt.Fprintf(a.stdout, "again:  oncestream torture %s\nreport: %s\n", r.Options, filepath.Join(r.Options.Folder, torture.ReportFile))
	if missed := r.Missed(); err == nil && len(missed) > 0 {
		return fmt.Errorf("the run proves nothing of %s, which never struck: give it more time (--for)", strings.Join(missed, ", "))
	}
	return err
}

func (a *app) tellVerdicts(all []check.Verdict) error {
	for _, v := range all {
		fmt.Fprintln(a.stdout, v)
	}
	if len(check.Violated(all)) > 0 {
		return errTorture
	}
	return nil
}
