package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

func (a *app) offsetsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "offsets",
		Short: "See and change where a pipeline stands",
		Long: `offsets shows where a pipeline stands in each partition, and changes it: rewind
reads records again, skip leaves records out, adopt takes the positions over to a
topic that was created again or to another cluster, and gives the ledger the label
of another environment.

Each change prints first what it would do and asks. It is done for all partitions
or for none, may be done while the pipeline runs, whose workers go on at the new
position by themselves, and is written down with who did it and why.`,
		Example: `  oncestream offsets show payments.yaml
  oncestream offsets rewind payments.yaml --to-time 2026-01-31T08:00:00Z --reason "left out by mistake"
  oncestream offsets skip payments.yaml --partition 3 --to-offset next --reason "ticket 1234"`,
		Args: a.noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.offsetsShowCommand(), a.rewindCommand(), a.skipCommand(), a.adoptCommand())
	return cmd
}

// standing is what a command on offsets knows of the brokers and the ledger.
type standing struct {
	lookout *processor.Lookout
	topic   processor.Topic
	// gone is why there is no topic; nil where there is one.
	gone     error
	conn     *pgx.Conn
	ledger   *offsets.Ledger
	progress []offsets.Progress
}

// withStanding runs do with what the brokers and the ledger say of the pipeline.
func withStanding(ctx context.Context, c *config, do func(*standing) error) error {
	lookout, err := processor.OpenLookout(c.engine.Kafka)
	if err != nil {
		return err
	}
	defer lookout.Close()
	s := &standing{lookout: lookout}
	if s.topic, err = lookout.Topic(ctx); errors.Is(err, processor.ErrNoTopic) {
		s.gone = err
	} else if err != nil {
		return err
	}
	return withLedger(ctx, c, func(conn *pgx.Conn, ledger *offsets.Ledger) (err error) {
		s.conn, s.ledger = conn, ledger
		if s.progress, err = ledger.Progress(ctx, conn); err != nil {
			return err
		}
		return do(s)
	})
}

// identity is the topic that is there now.
func (s *standing) identity() offsets.Identity {
	return offsets.Identity{ClusterID: s.topic.ClusterID, TopicID: s.topic.ID}
}

// partition returns what the log of a partition holds, and what the group has
// read of it.
func (s *standing) partition(n int32) (r processor.PartitionRange, stored offsets.Progress, inTopic, inLedger bool) {
	for _, p := range s.topic.Partitions {
		if p.Partition == n {
			r, inTopic = p, true
		}
	}
	for _, p := range s.progress {
		if p.Partition == n {
			stored, inLedger = p, true
		}
	}
	return r, stored, inTopic, inLedger
}

// numbers are the partitions of the topic and of the ledger.
func (s *standing) numbers() []int32 {
	var all []int32
	for _, p := range s.topic.Partitions {
		all = append(all, p.Partition)
	}
	for _, p := range s.progress {
		all = append(all, p.Partition)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// whoami is who sits here, as user@host.
func whoami() string {
	name := fmt.Sprintf("uid-%d", os.Getuid()) // in a container without a list of users
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return name + "@" + host
}
