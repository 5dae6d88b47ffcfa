package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/schema/tables"
)

// version is set by the linker (-X main.version=v1.2.3) where a release is
// built; otherwise the build information says what it knows.
var version string

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "version prints the program's version, the commit it was built from, and the\nversion of the ledger's tables that it works with.",
		Example: "  oncestream version",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "oncestream %s, tables %d, %s %s/%s\n",
				buildVersion(), tables.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// buildVersion returns the version given by the linker, else the module's, and
// the commit where it is known.
func buildVersion() string {
	v := version
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if v == "" {
		v = info.Main.Version
	}
	i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	if i < 0 {
		return v
	}
	return v + " (" + info.Settings[i].Value + ")"
}
