package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// fault is one thing that is wrong with the configuration: where, which field,
// which rule.
type fault struct {
	source string // "payments.yaml:9", or the flag or variable that was read
	line   int    // for the order; 0 for flags and variables, which come first
	path   string // the field, empty where the file as a whole is meant
	text   string
}

func (f fault) String() string {
	if f.path == "" {
		return f.source + ": " + f.text
	}
	return f.source + ": " + f.path + ": " + f.text
}

// faults is all that is wrong with the configuration, one line each: whoever
// mends a file wants to mend it once.
type faults []fault

func (fs faults) Error() string {
	slices.SortStableFunc(fs, func(a, b fault) int { return a.line - b.line })
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// err returns nil where nothing is wrong.
func (fs faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// usageError is a command line that makes no sense. It ends with exit code 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// isUsage reports whether err is about what was asked for, so that trying the
// same again cannot help.
func isUsage(err error) bool {
	if _, ok := errors.AsType[faults](err); ok {
		return true
	}
	_, ok := errors.AsType[usageError](err)
	return ok
}
