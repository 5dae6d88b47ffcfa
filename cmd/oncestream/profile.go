package main

import (
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/spf13/cobra"
)

// profiled gives the program a hidden flag that keeps a CPU profile of a command
// that succeeds. The benchmark looks into the shipped program by it; users have
// the metrics.
func profiled(root *cobra.Command) {
	var name string
	root.PersistentFlags().StringVar(&name, "cpu-profile", "", "write a CPU profile of the command to this file")
	_ = root.PersistentFlags().MarkHidden("cpu-profile") // it was just defined
	before := root.PersistentPreRunE
	var file *os.File
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := before(cmd, args); err != nil || name == "" {
			return err
		}
		if file, err = os.Create(name); err != nil {
			return fmt.Errorf("--cpu-profile: %w", err)
		}
		return pprof.StartCPUProfile(file)
	}
	root.PersistentPostRunE = func(*cobra.Command, []string) error {
		if file == nil {
			return nil
		}
		pprof.StopCPUProfile()
		return file.Close()
	}
}
