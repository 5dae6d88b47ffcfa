//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"runtime/pprof"
	"time"
)

// target is what a contender of this program is told.
type target struct {
	brokers             []string
	topic, url          string
	records, partitions int
	rate, seconds       int
	profile             string
}

// outcome is what it answers, as JSON.
type outcome struct {
	Records int64         `json:"records"`
	Took    time.Duration `json:"took"`
	// P50 and P99 are the times from a record's send to its COMMIT.
	P50 time.Duration `json:"p50,omitempty"`
	P99 time.Duration `json:"p99,omitempty"`
}

// programs are the contenders that are programs of our own.
func programs() map[string]func(context.Context, target) (outcome, error) {
	return map[string]func(context.Context, target) (outcome, error){
		"ceiling": runCeiling, "copy": runCopy, "naive": runNaive, "consume": runConsume, "each": runEach, "latency": runLatency,
	}
}

// contend is this program as a contender.
func contend(ctx context.Context, name string, args []string, stdout io.Writer) (err error) {
	var t target
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	brokers := f.String("brokers", "", "")
	f.StringVar(&t.topic, "topic", "", "")
	f.StringVar(&t.url, "url", "", "")
	f.IntVar(&t.records, "records", 0, "")
	f.IntVar(&t.partitions, "partitions", 0, "")
	f.IntVar(&t.rate, "rate", 0, "")
	f.IntVar(&t.seconds, "seconds", 0, "")
	f.StringVar(&t.profile, "cpu-profile", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	t.brokers = list(*brokers)
	stop, err := startProfile(t.profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	o, err := programs()[name](ctx, t)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(o)
}

func startProfile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	w, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return w.Close()
	}, nil
}
