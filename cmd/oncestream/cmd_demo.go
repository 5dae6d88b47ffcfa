package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/oncestream/oncestream/processor"
)

const (
	demoPartitions = 6
	demoMembers    = 3
	// demoLimit is how long the group may take for all records; on a machine
	// that is slower something hangs.
	demoLimit = 5 * time.Minute
)

// demo is one run of the demo.
type demo struct {
	app      *app
	payments payments
	keep     bool

	world   *demoWorld
	config  *config
	members []*member
	verdict verdict
}

func (a *app) demoCommand() *cobra.Command {
	d := &demo{app: a, payments: payments{partitions: demoPartitions, size: 200}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work: crash, rebalance, replay, verdict",
		Long: `demo shows the promise being kept, on this machine, with nothing installed: it
starts a Kafka cluster inside of this process and a PostgreSQL server in a
temporary folder (one that it finds, or else downloads), and three members of a
consumer group, each a process of its own. It sends payments, some of them twice,
kills a member without warning between the last statement of a batch and its
COMMIT, lets the partitions move to the others, waits until all is read, and
then reads the whole topic again.

It prints what was sent and what the tables hold, and exits with 0 only if each
payment was stored once, the balances are exact, and the second reading has
changed nothing. Everything is removed at the end, also after Ctrl-C.`,
		Example: `  oncestream demo
  oncestream demo --records 1000000 --duplicates 0.2 --seed 7
  oncestream demo --keep        look around with psql afterwards`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.IntVar(&d.payments.records, "records", 100_000, "how many payments to send, repeats included; at least 1000")
	f.Float64Var(&d.payments.duplicates, "duplicates", 0.05, "which share of them are repeats")
	f.Uint64Var(&d.payments.seed, "seed", 1, "which payments")
	f.BoolVar(&d.keep, "keep", false, "keep the services running after the verdict, until Ctrl-C")
	return cmd
}

// run runs the demo and cleans up after it, whatever happens.
func (d *demo) run(ctx context.Context) (err error) {
	p := d.payments
	if p.records < 1000 || p.duplicates < 0 || p.duplicates >= 1 {
		return usagef("--records must be 1000 or more and --duplicates between 0 and 1, without 1 (got %d and %g)", p.records, p.duplicates)
	}
	began := time.Now()
	defer func() { err = errors.Join(err, d.cleanUp()) }()
	err = d.play(ctx)
	switch {
	case err == nil:
		return d.conclude(ctx, time.Since(began))
	case ctx.Err() != nil:
		return errors.New("stopped before the verdict")
	case d.world == nil:
		return err
	}
	return fmt.Errorf("%w\nthe members' last words:\n%s", err, d.world.logTail(10))
}

// open starts the services.
func (d *demo) open(ctx context.Context) (err error) {
	d.say("starting PostgreSQL and Kafka …")
	// About eight batches for each partition, so that "mid-batch" is midway.
	if d.world, err = openWorld(ctx, demoPartitions, max(20, d.payments.records/demoPartitions/8)); err != nil {
		return err
	}
	d.config, err = loadConfig(d.world.file, nil, func(string) (string, bool) { return "", false })
	return err
}

// play is the story: send, kill, wait, replay.
func (d *demo) play(ctx context.Context) error {
	if err := d.open(ctx); err != nil {
		return err
	}
	if err := d.startMembers(ctx); err != nil {
		return err
	}
	d.say("sending %s payments while the group reads them; one member will be killed", thousands(d.payments.records))
	limited, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	g, gctx := errgroup.WithContext(limited)
	g.Go(func() (err error) {
		d.verdict.tally, err = d.app.publish(gctx, d.config.engine.Kafka, &d.payments, 0)
		return err
	})
	g.Go(func() error { return d.killInMidBatch(gctx) })
	if err := g.Wait(); err != nil {
		return err
	}
	if err := d.awaitEnd(ctx); err != nil {
		return err
	}
	for _, m := range d.members {
		if err := m.stop(); err != nil {
			return err
		}
	}
	return d.prove(ctx)
}

// startMembers starts the group and waits until each member has partitions. The
// first one is the victim.
func (d *demo) startMembers(ctx context.Context) error {
	halfway := int64(float64(d.payments.records) / demoPartitions * 0.4)
	for i := range demoMembers {
		more := []string{}
		if i == 0 {
			more = append(more, fmt.Sprintf("--pause-past=%d", halfway))
		}
		m, err := d.app.startMember(ctx, fmt.Sprintf("member %d", i+1), d.world.file, d.world.log, more...)
		if err != nil {
			return err
		}
		d.members = append(d.members, m)
	}
	d.say("waiting for %d processes to share %d partitions …", demoMembers, demoPartitions)
	return d.watch(ctx, func(s status) bool {
		owners := map[string]bool{}
		for _, p := range s.Partitions {
			if p.Owner == "" {
				return false
			}
			owners[p.Owner] = true
		}
		return len(owners) == demoMembers
	})
}

// killInMidBatch waits until the victim stands before a COMMIT, and kills it.
func (d *demo) killInMidBatch(ctx context.Context) error {
	victim := d.members[0]
	select {
	case <-ctx.Done():
		return ctx.Err()
	case line, ok := <-victim.said:
		var partition, from, to int64
		if _, err := fmt.Sscanf(line, "%d %d %d", &partition, &from, &to); !ok || err != nil {
			return fmt.Errorf("%s ended before it could be killed", victim.name)
		}
		if err := victim.kill(); err != nil {
			return err
		}
		d.members = d.members[1:]
		d.say("killed %s (kill -9) with the records %d to %d of partition %d written and not committed", victim.name, from, to-1, partition)
		return nil
	}
}

// awaitEnd waits until the group has passed all records.
func (d *demo) awaitEnd(ctx context.Context) error {
	d.say("waiting for the others to take over its partitions …")
	bar := d.app.newProgress("processed", d.verdict.tally.sent)
	err := d.watch(ctx, func(s status) bool {
		d.verdict.totals = s
		bar.set(s.Total.Processed)
		return s.Total.Lag == 0
	})
	if err == nil {
		bar.finish()
	}
	return err
}

// watch reads the status until done says so.
func (d *demo) watch(ctx context.Context, done func(status) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, errors.New("the group has not come to an end in time"))
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		s, err := readStatus(ctx, d.config)
		switch {
		case err != nil:
			return err
		case s.Total.State == "halted":
			return errors.New("a partition is halted, which nothing in the demo gives a reason for")
		case done(s):
			return nil
		}
		if err := d.awaitTick(ctx, ticker.C); err != nil {
			return err
		}
	}
}

// awaitTick also looks whether a member has ended that should not have.
func (d *demo) awaitTick(ctx context.Context, tick <-chan time.Time) error {
	for _, m := range d.members {
		select {
		case <-m.ended:
			return fmt.Errorf("%s ended by itself: %w", m.name, errors.Join(m.err, errors.New("it should run until it is stopped")))
		default:
		}
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-tick:
		return nil
	}
}

// prove replays the topic between two digests of the tables.
func (d *demo) prove(ctx context.Context) error {
	v := &d.verdict
	d.say("replaying the whole topic, expecting nothing new …")
	p, err := d.app.openPipeline(ctx, d.config)
	if err != nil {
		return err
	}
	return withConn(ctx, d.world.url, func(conn *pgx.Conn) (err error) {
		if v.before, err = readDigests(ctx, conn); err != nil {
			return err
		}
		if v.replay, err = d.app.replayShown(ctx, p, processor.Range{}); err != nil {
			return err
		}
		if v.after, err = readDigests(ctx, conn); err != nil {
			return err
		}
		return v.readTables(ctx, conn)
	})
}

// conclude prints the verdict.
func (d *demo) conclude(ctx context.Context, took time.Duration) error {
	out := d.app.stdout
	fmt.Fprintln(out)
	holds, err := d.verdict.write(out)
	if err != nil {
		return err
	}
	word := "every payment had its effect exactly once"
	if !holds {
		word = "the promise is broken"
	}
	fmt.Fprintf(out, "\nverdict after %.1f s: %s\n", took.Seconds(), word)
	if d.keep {
		fmt.Fprintf(out, "\nlook around until Ctrl-C:\n  psql %q\n  oncestream status %s\n", d.world.url, d.world.file)
		<-ctx.Done()
	}
	if !holds {
		return errors.New("the demo found a payment that was lost or doubled")
	}
	return nil
}

// cleanUp stops what still runs and removes what was made.
func (d *demo) cleanUp() error {
	for _, m := range d.members {
		select {
		case <-m.ended:
		default:
			_ = m.stop() // the verdict is spoken, or another error tells more
		}
	}
	if d.world == nil {
		return nil
	}
	return d.world.close()
}

// say tells what the demo does now.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.app.stderr, format+"\n", args...)
}
