package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
)

// letterFlags are the flags that select dead letters, and which of them a
// command has.
type letterFlags struct {
	// reasonFlag is the flag of the codes. Defaults to "reason".
	reasonFlag string
	// states says that the command has --state; anyState that it looks at all
	// states unless told otherwise.
	states, anyState bool
	// limit is the default of --limit; 0 says that there is no such flag, and
	// that all are meant.
	limit int

	limited      bool
	ids          []int64
	reasons      []string
	partitions   []int32
	since, until string
	state        []string
}

// letterStates are the choices of --state.
func letterStates() []string {
	return []string{offsets.StateDead, offsets.StateReplayed, offsets.StateDiscarded}
}

func (f *letterFlags) add(cmd *cobra.Command) {
	if f.reasonFlag == "" {
		f.reasonFlag = "reason"
	}
	flags := cmd.Flags()
	flags.Int64SliceVar(&f.ids, "id", nil, "those of these numbers, as list shows them")
	flags.StringSliceVar(&f.reasons, f.reasonFlag, nil, "those of these reasons, such as value_range")
	flags.Int32SliceVar(&f.partitions, "partition", nil, "those of these partitions")
	flags.StringVar(&f.since, "since", "", "those set aside since this time, as 2026-01-31T08:00:00Z or as a time ago such as 24h")
	flags.StringVar(&f.until, "until", "", "those set aside before this time")
	if f.states {
		which := "dead (the default)"
		if f.anyState {
			which = "dead"
		}
		flags.StringSliceVar(&f.state, "state", nil, "those in these states: "+which+", replayed, discarded or all")
	}
	if f.limited = f.limit > 0; f.limited {
		flags.IntVar(&f.limit, "limit", f.limit, "how many at most")
	}
}

// given reports whether any flag selects.
func (f *letterFlags) given() bool {
	return len(f.ids)+len(f.reasons)+len(f.partitions)+len(f.since)+len(f.until) > 0
}

// filter reads the flags.
func (f *letterFlags) filter(now time.Time) (offsets.DeadLetterFilter, error) {
	filter := offsets.DeadLetterFilter{IDs: f.ids, Reasons: f.reasons, Partitions: f.partitions, States: f.state, Limit: f.limit}
	if f.limited && f.limit <= 0 {
		return filter, usagef("--limit must be positive (got %d)", f.limit)
	}
	for _, s := range f.state {
		if s != "all" && !slices.Contains(letterStates(), s) {
			return filter, usagef("--state: must be dead, replayed, discarded or all (got %q)", s)
		}
	}
	if slices.Contains(f.state, "all") || f.anyState && len(f.state) == 0 {
		filter.States = letterStates()
	}
	var err error
	if filter.Since, err = parseTime("--since", f.since, now); err != nil {
		return filter, err
	}
	filter.Until, err = parseTime("--until", f.until, now)
	return filter, err
}

// parseTime reads a time, or a time ago.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usagef("%s: must be a time such as 2026-01-31T08:00:00Z, or a time ago such as 24h (got %q)", flag, text)
	}
	return t, nil
}
