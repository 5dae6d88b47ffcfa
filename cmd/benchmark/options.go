//go:build unix

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// options are what the command line asks for.
type options struct {
	binary              string
	records, partitions int
	rounds              int
	parts, only         []string
	json, svg, pprof    string
	rate, seconds       int
}

// parts are what can be measured.
const (
	partThroughput = "throughput"
	partLatency    = "latency"
	partScale      = "scale"
	partIdle       = "idle"
)

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("benchmark", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.binary, "binary", "bin/oncestream", "the program to measure")
	f.IntVar(&o.records, "records", 1_000_000, "how many records, repeats included")
	f.IntVar(&o.partitions, "partitions", 8, "partitions of the topic")
	f.IntVar(&o.rounds, "rounds", 3, "how often each contender runs")
	parts := f.String("parts", partThroughput+","+partLatency, "what to measure: throughput, latency, scale, idle")
	only := f.String("only", "", "the contenders of throughput, all if empty")
	f.StringVar(&o.json, "json", "", "write every single figure to this file")
	f.StringVar(&o.svg, "svg", "", "draw the rates into this file")
	f.StringVar(&o.pprof, "pprof", "", "keep CPU profiles in this folder")
	f.IntVar(&o.rate, "rate", 5000, "records a second for latency")
	f.IntVar(&o.seconds, "seconds", 20, "how long latency and idle are watched")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o.parts, o.only = list(*parts), list(*only)
	return o, o.check(f.Args())
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func (o *options) check(rest []string) error {
	var errs []error
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("no arguments are taken (got %q)", rest))
	}
	if min(o.records, o.partitions, o.rounds, o.rate, o.seconds) < 1 {
		errs = append(errs, errors.New("--records, --partitions, --rounds, --rate and --seconds must be positive"))
	}
	for _, part := range o.parts {
		if !slices.Contains([]string{partThroughput, partLatency, partScale, partIdle}, part) {
			errs = append(errs, fmt.Errorf("--parts: there is no %q", part))
		}
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(contenders(), func(c contender) bool { return c.name == name }) {
			errs = append(errs, fmt.Errorf("--only: there is no contender %q", name))
		}
	}
	return errors.Join(errs...)
}
