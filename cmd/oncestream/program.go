package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Exit codes.
const (
	exitOK    = 0
	exitFault = 1 // something went wrong, or does not hold
	exitUsage = 2 // the command line or the pipeline file makes no sense
	exitNew   = 3 // a replay found what had no effect yet, or a verification what is not idempotent
)

// errNew ends a replay that was not clean; its report says the rest.
var errNew = errors.New("the replay found records that had no effect yet")

// app is the program: what it was given by the system, and what all commands
// share.
type app struct {
	env            lookup
	stdin          io.Reader
	stdout, stderr io.Writer
	// onTerminal says that a person watches stderr: then there are colours,
	// and a progress that overwrites itself.
	onTerminal bool

	logFormat, logLevel string
	log                 *slog.Logger
}

// run runs the program and returns its exit code. The first SIGINT or SIGTERM
// ends ctx, which is the graceful stop; a second one ends the process at once.
func run(ctx context.Context, args []string, env lookup, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()

	a := &app{env: env, stdin: stdin, stdout: stdout, stderr: stderr, onTerminal: isTerminal(stderr)}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errShown) {
		a.complain(err)
	}
	return exitCode(err)
}

// errShown marks an error that the command has told in its own way.
var errShown = errors.New("already shown")

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNew), errors.Is(err, errTorture), errors.Is(err, errNotProven), errors.Is(err, errDiffers):
		return exitNew
	case isUsage(err):
		return exitUsage
	}
	return exitFault
}

// complain writes err, a line for each thing that is wrong. A line that is
// indented goes on with the one before.
func (a *app) complain(err error) {
	text := strings.ReplaceAll(err.Error(), "\n\t", " ")
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(a.stderr, "oncestream:", line)
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "oncestream",
		Short: "Kafka into PostgreSQL, each effect exactly once",
		Long: `oncestream reads a Kafka topic and writes what follows from each record to
PostgreSQL, together with the record's idempotency key and the next offset in
one transaction. After a crash, a rebalance or a repeated send, an event that
had its effect has no second one.

Exit codes: 0 all is well, 1 a fault, 2 the command line or the pipeline file
makes no sense, 3 a replay found something new, or verify what is not idempotent.`,
		Example: `  oncestream demo                            see it work, with nothing installed
  oncestream migrate up payments.yaml        make the ledger's tables
  oncestream run payments.yaml               run until stopped
  oncestream status payments.yaml            how far it is
  oncestream replay payments.yaml            prove that nothing is missing
  oncestream verify payments.yaml            prove that it is idempotent and survives crashes
  oncestream dead-letters list payments.yaml what could not be handled, and why`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          a.noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return a.openLog()
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w: see %s --help", err, cmd.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.logFormat, "log-format", "", "how log lines are written where stderr is no terminal: text or json (environment: ONCESTREAM_LOG_FORMAT; default text)")
	flags.StringVar(&a.logLevel, "log-level", "", "the least level that is logged: debug, info, warn or error (environment: ONCESTREAM_LOG_LEVEL; default info)")
	root.AddCommand(a.runCommand(), a.migrateCommand(), a.produceCommand(), a.statusCommand(),
		a.replayCommand(), a.verifyCommand(), a.keysCommand(), a.offsetsCommand(), a.deadLettersCommand(), a.lintCommand(), a.demoCommand(), a.tortureCommand(), a.benchCommand(), a.versionCommand())
	addExamples(root)
	profiled(root)
	return root
}

// addExamples gives examples to the commands that cobra brings.
func addExamples(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Example = "  oncestream help run"
		case "completion":
			c.Example = "  source <(oncestream completion bash)\n  oncestream completion zsh > \"${fpath[1]}/_oncestream\""
		}
	}
}

// noCommand refuses what is no command of cmd, with the nearest one.
func (a *app) noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return usagef("there is no command %q%s: see %s --help", args[0], didYouMean(args[0], names), cmd.CommandPath())
}

// oneFile is the argument of the commands that work on a pipeline file.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return usagef("%s needs one pipeline file (got %d): see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("%s takes no arguments (got %q): see %s --help", cmd.CommandPath(), args, cmd.CommandPath())
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
