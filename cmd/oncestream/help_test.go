package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command that a person can see has a long text, and an example that runs
// that very command.
func TestHelp(t *testing.T) {
	a := &app{}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Long == "" {
			t.Errorf("%s has no long text", c.CommandPath())
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s has no example of itself: %q", c.CommandPath(), c.Example)
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && c.Name() != "completion" {
				visit(sub)
			}
		}
	}
	visit(a.root())
}

// The program is a value: what it prints and how it exits is in the hands of
// its caller.
func TestRun(t *testing.T) {
	for _, test := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"version"}, exitOK, "oncestream ", ""},
		{[]string{"help", "replay"}, exitOK, "oncestream replay payments.yaml --dry-run --to end", ""},
		{[]string{"run", "--help"}, exitOK, "--to-end", ""},
		{[]string{"completion", "bash"}, exitOK, "__oncestream", ""},
		{[]string{"migrate"}, exitOK, "migrate status", ""},
		{[]string{"migrate", "down"}, exitUsage, "", "no command \"down\""},
		{[]string{"version", "now"}, exitUsage, "", "takes no arguments"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), test.args, environment(nil), strings.NewReader(""), &stdout, &stderr)
		if code != test.code || !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
			t.Errorf("%q exits with %d, want %d\nstdout: %s\nstderr: %s", test.args, code, test.code, stdout.String(), stderr.String())
		}
	}
}
