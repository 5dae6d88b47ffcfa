//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// contender is one line of the table.
type contender struct {
	name string
	// part is which part of the records it handles; slow ones would take minutes.
	part int
	// sinks is the pipeline's, of those that the product runs; the others are
	// programs of ours.
	sinks string
	// all says that the table payments holds every distinct payment afterwards.
	all bool
}

const (
	insertAlone = "  - insert: {table: payments}\n"
	andSum      = "  - sum: {table: customer_totals, key: {customer_id: customer_id}, add: {total: amount, payments: 1}}\n"
)

func contenders() []contender {
	return []contender{
		{name: "insert", part: 1, sinks: insertAlone, all: true},
		{name: "constraint", part: 1, sinks: insertAlone + "guard: constraint\n", all: true},
		{name: "ceiling", part: 1, all: true},
		{name: "copy", part: 1, all: true},
		{name: "insert+sum", part: 1, sinks: insertAlone + andSum, all: true},
		{name: "each", part: 10},
		{name: "naive", part: 50},
		{name: "consume", part: 1},
	}
}

// chosen are the contenders that were asked for.
func (o *options) chosen() []contender {
	return slices.DeleteFunc(contenders(), func(c contender) bool {
		return len(o.only) > 0 && !slices.Contains(o.only, c.name)
	})
}

// job is one run of a contender.
type job struct {
	contender
	topic, database, group string
	records, partitions    int
	// processes are how many of the product there are; 0 is one.
	processes int
	profile   string
}

// commands returns the processes of a job.
func (m *machine) commands(ctx context.Context, j job) ([]*exec.Cmd, error) {
	var all []*exec.Cmd
	for range max(1, j.processes) {
		cmd, err := m.command(ctx, j)
		if err != nil {
			return nil, err
		}
		all = append(all, cmd)
	}
	return all, nil
}

func (m *machine) command(ctx context.Context, j job) (*exec.Cmd, error) {
	if j.sinks != "" {
		return m.productCommand(ctx, j, m.postgres.URL(j.database))
	}
	return exec.CommandContext(ctx, m.self, j.name, "-brokers", m.brokers(), "-topic", j.topic, "-url", m.postgres.URL(j.database),
		"-records", strconv.Itoa(j.records/j.part), "-partitions", strconv.Itoa(j.partitions),
		"-rate", strconv.Itoa(m.rate), "-seconds", strconv.Itoa(m.seconds), "-cpu-profile", j.profile), nil
}

// pipelineFile is the payments pipeline of the example, with the defaults.
const pipelineFile = `name: %s
kafka: {brokers: [%s], topic: %s, start: earliest, instance_id: none}
postgres: {url: "%s"}
decode: {format: json}
key: {field: event_id, type: uuid}
sinks:
%s`

func (m *machine) productCommand(ctx context.Context, j job, url string) (*exec.Cmd, error) {
	file := filepath.Join(m.dir, j.group+".yaml")
	text := fmt.Sprintf(pipelineFile, j.group, strings.ReplaceAll(m.brokers(), ",", ", "), j.topic, url, j.sinks)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	args := []string{"run", file, "--log-level", "warn"}
	if j.records > 0 {
		args = append(args, "--to-end")
	}
	if j.profile != "" {
		args = append(args, "--cpu-profile", j.profile)
	}
	return exec.CommandContext(ctx, m.binary, args...), nil
}
