package torture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/oncestream/oncestream/processor/processortest/check"
	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
)

// Options says how a run is made. The zero value of a field means its default.
type Options struct {
	// Program is the command line of the program under test; `run FILE` and flags
	// are added. Defaults to this very program.
	Program []string
	// Environment is that of the workers. Defaults to this process's.
	Environment []string
	// Seed decides what is sent and which faults strike. Defaults to 1.
	Seed uint64
	// For is how long faults strike. Defaults to 1 minute.
	For time.Duration
	// Faults are the names of the faults, see [Faults]. Defaults to all that this
	// machine can carry.
	Faults []string
	// Broker is "kfake", a Kafka in this process, "kafka", a real one, or "kafka3",
	// three small real ones that replicate. Defaults to "kfake".
	Broker string
	// Workers is the number of processes, Partitions that of the topic, Rate how
	// many records are sent a second. Default to 3, 6 and 1,000.
	Workers, Partitions, Rate int
	// Limit is how long what is left may take after everything has healed.
	// Defaults to 2 minutes: a group may take two rebalances until it knows of all
	// who are dead.
	Limit time.Duration
	// Folder is where the logs, the history and the report are kept. Defaults to a
	// new temporary folder.
	Folder string
	// Wire is asked about every message between the workers and the database that
	// no fault has struck. It is for tests of the torture itself: a rule that
	// changes what passes makes a program of the worker that breaks the protocol,
	// and the checkers must see it. Defaults to nothing.
	Wire pgproxy.Rule
	// Tables is SQL that is run once the tables are there. It is for tests of the
	// torture itself, as Wire is: a trigger that breaks what the program relies on.
	// Defaults to nothing.
	Tables string
	// Say is told of each step. Defaults to nothing.
	Say func(format string, args ...any)
}

func (o Options) withDefaults() (Options, error) {
	if len(o.Program) == 0 {
		program, err := os.Executable()
		if err != nil {
			return o, fmt.Errorf("torture: which program to run: %w", err)
		}
		o.Program = []string{program}
	}
	o.Seed, o.For, o.Limit = cmp.Or(o.Seed, 1), cmp.Or(o.For, time.Minute), cmp.Or(o.Limit, 2*time.Minute)
	o.Broker = cmp.Or(o.Broker, brokerFake)
	o.Workers, o.Partitions, o.Rate = cmp.Or(o.Workers, 3), cmp.Or(o.Partitions, 6), cmp.Or(o.Rate, 1000)
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	var errs []error
	for name, n := range map[string]int{"workers": o.Workers, "partitions": o.Partitions, "rate": o.Rate, "for": int(o.For), "limit": int(o.Limit)} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("torture: %s: must be positive (got %d)", name, n))
		}
	}
	if !slices.Contains([]string{brokerFake, brokerReal, brokerCluster}, o.Broker) {
		errs = append(errs, fmt.Errorf("torture: broker: must be kfake, kafka or kafka3 (got %q)", o.Broker))
	}
	for _, name := range o.Faults {
		if !slices.ContainsFunc(Faults(), func(f Fault) bool { return f.Name == name }) {
			errs = append(errs, fmt.Errorf("torture: no fault %q; there are %s", name, strings.Join(faultNames(), ", ")))
		}
	}
	if o.Folder == "" && len(errs) == 0 {
		var err error
		o.Folder, err = os.MkdirTemp("", "oncestream-torture-")
		errs = append(errs, err)
	}
	return o, errors.Join(errs...)
}

// String is what repeats the run, as flags of the command.
func (o Options) String() string {
	text := fmt.Sprintf("--seed %d --for %v --broker %s --workers %d --partitions %d --rate %d", o.Seed, o.For, o.Broker, o.Workers, o.Partitions, o.Rate)
	if len(o.Faults) > 0 {
		text += " --faults " + strings.Join(o.Faults, ",")
	}
	return text
}

// Result is what came of a run.
type Result struct {
	Options  Options
	History  *check.History
	Verdicts []check.Verdict
	// NotRun are the faults that were left out, each with the reason.
	NotRun map[string]string
}

// Missed returns the faults that were made and never struck anything: a run in
// which a fault has missed proves nothing about it.
func (r Result) Missed() (names []string) {
	struck := map[string]bool{}
	for _, f := range r.History.Faults {
		struck[f.Kind] = struck[f.Kind] || f.Struck
	}
	for name, hit := range struck {
		if !hit {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Fault is something that can be done to a run.
type Fault struct {
	// Row is its number in the project's list of faults.
	Row int
	// Name is how it is asked for, What says what is done.
	Name, What string
	// Real says that it needs a real broker, Cluster that it needs three of them,
	// Fake that it needs the one in this process.
	Real, Cluster, Fake bool
	// Needs is what else it needs, empty for nothing.
	Needs string
	// Why is the reason that no run makes it, and what shows its row instead; empty
	// for a fault that can be made.
	Why string
	// lane tells faults that may strike at the same time from those that may not.
	lane lane
	// strike makes the fault and undoes it, and answers whether it hit anything.
	strike func(ctx context.Context, w *world, r *dice) (detail string, struck bool, err error)
	// lacks says what this machine lacks of what it needs, and is empty where
	// nothing is; nil means that nothing is needed.
	lacks func() string
}

// lane is a sequence of faults; the lanes run side by side.
type lane int

const (
	processes lane = iota
	services
)

// Faults are all faults, in the order of their rows.
func Faults() []Fault {
	all := slices.Concat(processFaults(), postgresFaults(), diskFaults(), clockFaults(), linkFaults(), kafkaLinkFaults(),
		kafkaFaults(), clusterFaults(), topicFaults(), recordFaults(), elsewhere())
	slices.SortStableFunc(all, func(a, b Fault) int { return a.Row - b.Row })
	return all
}

func faultNames() (names []string) {
	for _, f := range Faults() {
		names = append(names, f.Name)
	}
	return names
}
