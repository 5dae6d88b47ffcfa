package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/processor"
)

// configFlags adds the flags of fields of the pipeline file, those named or all
// that there are, and returns where their values are found once the command line
// is parsed.
func configFlags(cmd *cobra.Command, named ...string) func() map[string]string {
	values := map[string]*string{}
	for _, f := range fileFields(&config{}) {
		if f.flag != "" && (len(named) == 0 || slices.Contains(named, f.flag)) {
			values[f.flag] = cmd.Flags().String(f.flag, "", fmt.Sprintf("overrides %s of the file (environment: %s)", f.path, f.env))
		}
	}
	return func() map[string]string {
		given := map[string]string{}
		for name, v := range values {
			given[name] = *v
		}
		return given
	}
}

func (a *app) runCommand() *cobra.Command {
	var toEnd bool
	var member memberOptions
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a pipeline",
		Long: `run reads the topic of the pipeline file as a member of its consumer group and
writes the effects, until it is stopped. SIGTERM or Ctrl-C is a graceful stop:
transactions in flight are finished, the partitions are let go, and it exits
with 0. A second signal ends it at once, which loses and doubles nothing either.

With --to-end it exits with 0 once every partition has reached the end that it
had at the start, and with 1 where a partition is halted.`,
		Example: `  oncestream run payments.yaml
  KAFKA_BROKERS=kafka:9092 DATABASE_URL=postgres://db/app oncestream run payments.yaml --log-format json
  oncestream run payments.yaml --to-end`,
		Args: oneFile,
	}
	flags := configFlags(cmd)
	cmd.Flags().BoolVar(&toEnd, "to-end", false, "stop once the ends that the partitions have now are reached")
	member.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		ctx, stop := a.asMember(cmd.Context(), member, c)
		defer stop()
		return a.runPipeline(ctx, c, args[0], toEnd)
	}
	return cmd
}

// runPipeline runs until ctx ends, or to the end.
func (a *app) runPipeline(ctx context.Context, c *config, file string, toEnd bool) error {
	a.boundMemory()
	halts, meter := &haltList{}, a.newMeter(c)
	seen := a.newSight(c, file)
	c.engine.Hooks = joinHooks(c.engine.Hooks, processor.Hooks{Halted: halts.add, Committed: meter.committed}, seen.hooks())
	stopSeen, err := seen.start(ctx)
	if err != nil {
		return err
	}
	defer stopSeen()
	var p *processor.Processor
	err = processor.UntilReachable(ctx, a.log, c.engine.Retry, func(ctx context.Context) (err error) {
		p, err = a.openPipeline(ctx, c)
		return err
	})
	if err != nil {
		return stoppedEarly(ctx, err, toEnd)
	}
	seen.metrics.board.follow(p.Health)
	run := p.Run
	if toEnd {
		run = p.RunToEnd
	}
	stop := meter.start(ctx)
	err = run(ctx)
	stop()
	if errors.Is(err, processor.ErrHalted) {
		return halts.explain(err, file)
	}
	return stoppedEarly(ctx, err, toEnd)
}

// stoppedEarly is nil where a run was asked to stop while it still waited for the
// database or the topic: that is a graceful stop as any other, unless an end had
// to be reached.
func stoppedEarly(ctx context.Context, err error, toEnd bool) error {
	if ctx.Err() != nil && !toEnd && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// haltList gathers which partitions were halted, from the engine's goroutines.
type haltList struct {
	mu    sync.Mutex
	halts []processor.Halt
}

func (l *haltList) add(h processor.Halt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halts = append(l.halts, h)
}

// explain names what is halted and how to look at it.
func (l *haltList) explain(err error, file string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []error
	for _, h := range l.halts {
		text := fmt.Sprintf("%s/%d is halted at offset %d: %s: %v", h.Topic, h.Partition, h.Offset, h.Code, h.Err)
		if h.Remedy != "" {
			text += "; " + remedyMark + h.Remedy
		}
		all = append(all, errors.New(named(text, file)))
	}
	if len(all) == 0 {
		all = append(all, err)
	}
	return errors.Join(append(all, fmt.Errorf("nothing was lost; see it again with: oncestream status %s", file))...)
}

// meter tells a person at a terminal now and then how it goes.
type meter struct {
	app     *app
	config  *config
	records atomic.Int64
}

// meterEvery is how often the meter is told.
const meterEvery = 5 * time.Second

func (a *app) newMeter(c *config) *meter { return &meter{app: a, config: c} }

func (m *meter) committed(b processor.BatchInfo) { m.records.Add(int64(b.Records)) }

// start starts the meter where a person watches; the function it returns stops
// it and waits for it.
func (m *meter) start(ctx context.Context) (stop func()) {
	if !m.app.onTerminal {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.loop(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (m *meter) loop(ctx context.Context) {
	ticker := time.NewTicker(meterEvery)
	defer ticker.Stop()
	last := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := m.records.Load()
		attrs := []slog.Attr{slog.Int64("records_per_second", (now-last)/int64(meterEvery/time.Second))}
		last = now
		if s, err := readStatus(ctx, m.config); err == nil {
			attrs = append(attrs, slog.Int64("lag", s.Total.Lag))
		}
		m.app.log.LogAttrs(ctx, slog.LevelInfo, "progress", attrs...)
	}
}
