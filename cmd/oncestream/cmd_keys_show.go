package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

func (a *app) keysShowCommand() *cobra.Command {
	var asJSON, stored bool
	cmd := &cobra.Command{
		Use:   "show KEY... FILE",
		Short: "Show where a key was processed",
		Long: `show looks for one key of the pipeline's handler and shows where and when it was
processed first, the sum of its payload, and the result that its handler stored.

KEY is what the pipeline file makes the key of: the text of the field, of the
header or of the record key; for key.join one KEY for each field, in their order;
for key.position partition@offset. With --stored it is the UUID by which the
ledger knows the key, as its tables show it.

It exits with 1 where there is no such key: it was never processed, or it was
purged.`,
		Example: `  oncestream keys show evt_1 payments.yaml
  oncestream keys show 5e6b2c3f-8f0c-4f4e-9c67-1d2f3a4b5c6d payments.yaml --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("%s needs a key and one pipeline file (got %d arguments): see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
			}
			return nil
		},
	}
	flags := configFlags(cmd, "brokers", "topic", "database-url", "schema")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	cmd.Flags().BoolVar(&stored, "stored", false, "KEY is the UUID of the ledger's tables")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		parts, file := args[:len(args)-1], args[len(args)-1]
		c, err := loadConfig(file, flags(), a.env)
		if err != nil {
			return err
		}
		key, err := c.parseKey(cmd.Context(), parts, stored)
		if err != nil {
			return err
		}
		return a.showKey(cmd.Context(), c, key, asJSON)
	}
	return cmd
}

// parseKey makes the key that messages with these parts have.
func (c *config) parseKey(ctx context.Context, parts []string, stored bool) (schema.Key, error) {
	want := 1
	if !stored && len(c.key.join) > 0 {
		want = len(c.key.join)
	}
	if len(parts) != want {
		return schema.Key{}, usagef("the key is made of %d parts (got %q)", want, parts)
	}
	switch {
	case stored:
		id, err := uuid.Parse(parts[0])
		if err != nil {
			return schema.Key{}, usagef("--stored: %q is no UUID: %w", parts[0], err)
		}
		return schema.Key{ID: id}, nil
	case c.key.position:
		return c.positionKey(ctx, parts[0])
	}
	return c.textKey(parts)
}

// textKey is the key of texts, by the same rules as that of a message.
func (c *config) textKey(parts []string) (schema.Key, error) {
	var values []schema.KeyPart[string]
	for _, part := range parts {
		values = append(values, schema.ValuePart(func(schema.Message[string]) string { return part }))
	}
	key := schema.Join(values...)
	if c.key.kind == "uuid" {
		key = schema.AsUUID(values[0])
	}
	k, err := key(schema.Message[string]{Record: &schema.Record{}})
	if err != nil {
		return k, usagef("the key %q is none of this pipeline", strings.Join(parts, " "))
	}
	return k, nil
}

// positionKey asks the brokers for what else the key of a position holds.
func (c *config) positionKey(ctx context.Context, text string) (schema.Key, error) {
	left, right, _ := strings.Cut(text, "@")
	partition, err1 := strconv.ParseUint(left, 10, 31)
	offset, err2 := parseOffset(right)
	if err1 != nil || err2 != nil {
		return schema.Key{}, usagef("the key is the position: must be partition@offset (got %q)", text)
	}
	topic, err := processor.InspectTopic(ctx, c.engine.Kafka)
	if err != nil {
		return schema.Key{}, err
	}
	return schema.ByPosition[string]()(schema.Message[string]{Record: &schema.Record{
		ClusterID: topic.ClusterID, Topic: topic.Name, TopicID: topic.ID, Partition: int32(partition), Offset: offset,
	}})
}

// shownKey is what "keys show" shows.
type shownKey struct {
	Key         string          `json:"key"`
	Stored      string          `json:"stored"`
	Handler     string          `json:"handler"`
	Partition   int32           `json:"partition"`
	Offset      int64           `json:"offset"`
	ProcessedAt time.Time       `json:"processed_at"`
	PayloadSum  string          `json:"payload_sum"`
	Result      json.RawMessage `json:"result,omitempty"`
}

func (a *app) showKey(ctx context.Context, c *config, key schema.Key, asJSON bool) error {
	return withLedger(ctx, c, func(conn *pgx.Conn, ledger *offsets.Ledger) error {
		p, found, err := ledger.FindKey(ctx, conn, key.ID)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("handler %s knows no key %s: it was never processed, or it was purged (keys are kept %s)", c.handler, key, c.retainText())
		}
		s := shownKey{
			Key: key.String(), Stored: uuid.UUID(key.ID).String(), Handler: c.handler, Partition: p.Entry.Partition, Offset: p.Entry.Offset,
			ProcessedAt: p.At.UTC(), PayloadSum: fmt.Sprintf("%016x", uint64(p.Entry.PayloadSum)), Result: p.Result, //nolint:gosec // its bits
		}
		if asJSON {
			return json.NewEncoder(a.stdout).Encode(s)
		}
		s.write(a)
		return nil
	})
}

func (s *shownKey) write(a *app) {
	fmt.Fprintf(a.stdout, "key %s, stored as %s\n", s.Key, s.Stored)
	fmt.Fprintf(a.stdout, "processed by handler %s at %s\n", s.Handler, s.ProcessedAt.Format(time.RFC3339Nano))
	fmt.Fprintf(a.stdout, "first at partition %d, offset %d, with payload sum %s\n", s.Partition, s.Offset, s.PayloadSum)
	if s.Result != nil {
		fmt.Fprintf(a.stdout, "result %s\n", s.Result)
	}
}
