package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema/tables"
)

// status is how far a group is.
type status struct {
	Group      string            `json:"group"`
	Topic      string            `json:"topic"`
	Partitions []partitionStatus `json:"partitions"`
	Total      partitionStatus   `json:"total"`
}

// partitionStatus is how far one partition is. Next is null where the group has
// not begun it.
type partitionStatus struct {
	Partition            int32  `json:"partition"`
	Owner                string `json:"owner,omitempty"`
	Epoch                int64  `json:"epoch,omitempty"`
	Next                 *int64 `json:"next,omitempty"`
	End                  int64  `json:"end"`
	Lag                  int64  `json:"lag"`
	Processed            int64  `json:"processed"`
	DuplicatesProducer   int64  `json:"duplicates_producer"`
	DuplicatesRedelivery int64  `json:"duplicates_redelivery"`
	DeadLetters          int64  `json:"dead_letters"`
	State                string `json:"state"`
	Reason               string `json:"reason,omitempty"`
}

func (a *app) statusCommand() *cobra.Command {
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use:   "status FILE",
		Short: "Show how far a pipeline is",
		Long: `status shows for each partition who holds it, the next offset to handle, the end
of the log, the lag between the two, and the account of what has passed:
processed records, the duplicates among them by their cause, and the dead letters
that were not replayed. A halted partition says why. The lag counts offsets up to
the last stable one: what belongs to an open Kafka transaction is not waited for.`,
		Example: `  oncestream status payments.yaml
  oncestream status payments.yaml --watch
  oncestream status payments.yaml --json | jq .total.lag`,
		Args: oneFile,
	}
	flags := configFlags(cmd, "brokers", "topic", "database-url", "schema")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	cmd.Flags().BoolVar(&watch, "watch", false, "print it again every two seconds until stopped")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		show := func() error { return a.showStatus(cmd.Context(), c, asJSON, watch) }
		if watch {
			return every(cmd.Context(), 2*time.Second, show)
		}
		return show()
	}
	return cmd
}

// every calls do until ctx ends or do fails.
func every(ctx context.Context, pause time.Duration, do func() error) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		if err := do(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (a *app) showStatus(ctx context.Context, c *config, asJSON, watch bool) error {
	s, err := readStatus(ctx, c)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(s)
	}
	if watch && isTerminal(a.stdout) {
		fmt.Fprint(a.stdout, "\x1b[H\x1b[2J") // to the corner, and clear
	}
	return s.write(a.stdout)
}

// readStatus asks the brokers and the ledger.
func readStatus(ctx context.Context, c *config) (status, error) {
	s := status{Group: c.name, Topic: c.engine.Kafka.Topic}
	topic, err := processor.InspectTopic(ctx, c.engine.Kafka)
	if err != nil {
		return s, err
	}
	var progress []offsets.Progress
	err = withConn(ctx, c.engine.Postgres.URL, func(conn *pgx.Conn) (err error) {
		if err := tables.Check(ctx, conn, c.engine.Postgres.Schema); err != nil {
			return err
		}
		ledger := offsets.New(offsets.Options{Schema: c.engine.Postgres.Schema, Group: c.name, Topic: s.Topic, Handler: c.handler})
		progress, err = ledger.Progress(ctx, conn)
		return err
	})
	s.fill(topic, progress)
	return s, err
}

func (s *status) fill(topic processor.Topic, progress []offsets.Progress) {
	byPartition := map[int32]offsets.Progress{}
	for _, p := range progress {
		byPartition[p.Partition] = p
	}
	for _, r := range topic.Partitions {
		p := partitionStatus{Partition: r.Partition, End: r.End, State: "not begun", Lag: max(0, r.Stable-r.Start)}
		if known, ok := byPartition[r.Partition]; ok {
			p.take(known, r)
		}
		s.Partitions = append(s.Partitions, p)
		s.Total.add(p)
	}
}

func (p *partitionStatus) take(known offsets.Progress, r processor.PartitionRange) {
	p.Owner, p.Epoch, p.Next = known.Owner, known.Epoch, &known.Next
	p.Lag = max(0, r.Stable-known.Next)
	p.Processed, p.DeadLetters = known.Records, known.DeadLetters
	p.DuplicatesProducer, p.DuplicatesRedelivery = known.DuplicatesProducer, known.DuplicatesRedelivery
	p.State, p.Reason = known.State, known.Reason
}

// add adds a partition to the total.
func (p *partitionStatus) add(o partitionStatus) {
	p.Partition++
	p.Lag += o.Lag
	p.Processed += o.Processed
	p.DuplicatesProducer += o.DuplicatesProducer
	p.DuplicatesRedelivery += o.DuplicatesRedelivery
	p.DeadLetters += o.DeadLetters
	if p.State != "halted" {
		p.State = o.State
	}
}

func (s *status) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "group %s, topic %s\n", s.Group, s.Topic)
	fmt.Fprintln(w, "PARTITION\tOWNER\tEPOCH\tNEXT\tEND\tLAG\tPROCESSED\tDUPLICATES\tBY PRODUCER\tBY REDELIVERY\tDEAD LETTERS\tSTATE")
	for _, p := range s.Partitions {
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%d\t%d\t%s\n", p.Partition, orDash(p.Owner), p.Epoch, p.nextText(), p.End, p.Lag, p.account())
	}
	fmt.Fprintf(w, "all\t\t\t\t\t%d\t%s\n", s.Total.Lag, s.Total.account())
	return w.Flush()
}

func (p *partitionStatus) account() string {
	state := p.State
	if p.Reason != "" {
		state += ": " + p.Reason
	}
	return fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%s", p.Processed, p.DuplicatesProducer+p.DuplicatesRedelivery, p.DuplicatesProducer, p.DuplicatesRedelivery, p.DeadLetters, state)
}

func (p *partitionStatus) nextText() string {
	if p.Next == nil {
		return "-"
	}
	return strconv.FormatInt(*p.Next, 10)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
