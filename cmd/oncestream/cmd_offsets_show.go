package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
)

func (a *app) offsetsShowCommand() *cobra.Command {
	var asJSON bool
	var history int
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show where a pipeline stands, and what was changed of it",
		Long: `show prints for each partition the stored offset, which is the next one to handle,
its epoch and owner, and where the log begins and ends. KAFKA is the offset that
Kafka keeps for the group, and DRIFT by how much it is ahead of the stored one, or
behind where it is negative: it decides nothing, and is behind by what was
committed in the last second of a pipeline that runs.

A skip shows in Kafka's offset once the next record was handled.

REWOUND and SKIPPED are the offsets that changes have set back and left out. With
--history the last changes are listed, with who made them and why.`,
		Example: `  oncestream offsets show payments.yaml
  oncestream offsets show payments.yaml --history 20
  oncestream offsets show payments.yaml --json | jq '.partitions[] | select(.drift != 0)'`,
		Args: oneFile,
	}
	flags := configFlags(cmd, "brokers", "topic", "database-url", "schema")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	cmd.Flags().IntVar(&history, "history", 0, "list this many of the last changes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if history < 0 {
			return usagef("--history must not be negative (got %d)", history)
		}
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		shown, err := readOffsets(cmd.Context(), c, history)
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(a.stdout).Encode(shown)
		}
		return shown.write(a.stdout)
	}
	return cmd
}

// shownOffsets is what "offsets show" prints.
type shownOffsets struct {
	Group       string           `json:"group"`
	Topic       string           `json:"topic"`
	Environment string           `json:"environment,omitempty"`
	ClusterID   string           `json:"cluster_id"`
	TopicID     uuid.UUID        `json:"topic_id"`
	Partitions  []shownPartition `json:"partitions"`
	Changes     []shownChange    `json:"changes,omitempty"`
	Labels      []shownLabel     `json:"environment_changes,omitempty"`
}

// shownPartition is where one partition stands. Stored is null where the group
// has not begun it, Kafka where Kafka keeps no offset, Drift where one of them is.
type shownPartition struct {
	Partition int32  `json:"partition"`
	Stored    *int64 `json:"stored"`
	Epoch     int64  `json:"epoch"`
	Owner     string `json:"owner,omitempty"`
	LogStart  int64  `json:"log_start"`
	LogEnd    int64  `json:"log_end"`
	Kafka     *int64 `json:"kafka"`
	Drift     *int64 `json:"drift"`
	Rewound   int64  `json:"rewound"`
	Skipped   int64  `json:"skipped"`
	State     string `json:"state"`
	Reason    string `json:"reason,omitempty"`
}

type shownChange struct {
	Partition int32          `json:"partition"`
	Action    offsets.Action `json:"action"`
	From      int64          `json:"from"`
	To        int64          `json:"to"`
	Epoch     int64          `json:"epoch"`
	By        string         `json:"by"`
	Reason    string         `json:"reason"`
	At        time.Time      `json:"at"`
}

type shownLabel struct {
	From   string    `json:"from,omitempty"`
	To     string    `json:"to"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func readOffsets(ctx context.Context, c *config, history int) (*shownOffsets, error) {
	shown := &shownOffsets{Group: c.name, Partitions: []shownPartition{}}
	err := withStanding(ctx, c, func(s *standing) (err error) {
		shown.Topic, shown.ClusterID, shown.TopicID = s.topic.Name, s.topic.ClusterID, s.topic.ID
		if shown.Environment, err = s.ledger.Environment(ctx, s.conn); err != nil {
			return err
		}
		// Kafka is asked before the ledger, which moves first: a pipeline that
		// runs must not look as if Kafka were ahead.
		kafka, err := s.lookout.KafkaOffsets(ctx, c.name)
		if err != nil {
			return err
		}
		if s.progress, err = s.ledger.Progress(ctx, s.conn); err != nil {
			return err
		}
		for _, n := range s.numbers() {
			shown.Partitions = append(shown.Partitions, s.show(n, kafka))
		}
		return shown.readHistory(ctx, s, history)
	})
	return shown, err
}

// show is where a partition stands; one that the topic does not have any more is
// shown by the ledger alone.
func (s *standing) show(n int32, kafka map[int32]int64) shownPartition {
	r, stored, inTopic, inLedger := s.partition(n)
	p := shownPartition{Partition: n, LogStart: r.Start, LogEnd: r.End, State: "not begun"}
	if inLedger {
		p.take(stored, s.identity())
	}
	if !inTopic {
		p.Reason = "the topic has no such partition"
	}
	if at, known := kafka[n]; known {
		p.compare(at)
	}
	return p
}

func (p *shownPartition) take(stored offsets.Progress, here offsets.Identity) {
	p.Stored, p.Epoch, p.Owner, p.State, p.Reason = &stored.Next, stored.Epoch, stored.Owner, stored.State, stored.Reason
	p.Rewound, p.Skipped = stored.Rewound, stored.Skipped
	if stored.Identity() != here && p.Reason == "" {
		p.Reason = "the position is of " + stored.Identity().String()
	}
}

func (p *shownPartition) compare(kafka int64) {
	p.Kafka = &kafka
	if p.Stored != nil {
		drift := kafka - *p.Stored
		p.Drift = &drift
	}
}

func (o *shownOffsets) readHistory(ctx context.Context, s *standing, limit int) error {
	if limit == 0 {
		return nil
	}
	changes, err := s.ledger.Changes(ctx, s.conn, limit)
	if err != nil {
		return err
	}
	for _, c := range changes {
		o.Changes = append(o.Changes, shownChange{c.Partition, c.Action, c.From, c.To, c.Epoch, c.By, c.Reason, c.At.UTC()})
	}
	labels, err := s.ledger.EnvironmentChanges(ctx, s.conn, limit)
	for _, c := range labels {
		o.Labels = append(o.Labels, shownLabel{c.From, c.To, c.By, c.Reason, c.At.UTC()})
	}
	return err
}

func (o *shownOffsets) write(out io.Writer) error {
	fmt.Fprintf(out, "group %s, topic %s (id %s of cluster %s), environment %s\n", o.Group, o.Topic, o.TopicID, o.ClusterID, orDash(o.Environment))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTITION\tSTORED\tEPOCH\tOWNER\tLOG START\tLOG END\tKAFKA\tDRIFT\tREWOUND\tSKIPPED\tSTATE")
	for _, p := range o.Partitions {
		state := p.State
		if p.Reason != "" {
			state += ": " + p.Reason
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%d\t%d\t%s\n", p.Partition, orNone(p.Stored), p.Epoch, orDash(p.Owner), p.LogStart, p.LogEnd,
			orNone(p.Kafka), orNone(p.Drift), p.Rewound, p.Skipped, state)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range o.Changes {
		fmt.Fprintf(out, "%s  %s partition %d: %d to %d, epoch %d, by %s: %s\n", timeText(c.At), c.Action, c.Partition, c.From, c.To, c.Epoch, printable([]byte(c.By)), printable([]byte(c.Reason)))
	}
	for _, c := range o.Labels {
		fmt.Fprintf(out, "%s  environment %s to %s, by %s: %s\n", timeText(c.At), orDash(c.From), c.To, printable([]byte(c.By)), printable([]byte(c.Reason)))
	}
	return nil
}

// orNone writes a number, or a dash where there is none.
func orNone(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}
