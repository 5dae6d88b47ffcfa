package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/offsets"
)

// KafkaOffsets returns the offsets that Kafka keeps for the group on the topic,
// by partition. They are told to Kafka behind each batch and decide nothing;
// what differs from the ledger's is drift. A partition for which Kafka keeps
// none is absent, and so are all of a group that Kafka does not know.
func KafkaOffsets(ctx context.Context, k Kafka, group string) (map[int32]int64, error) {
	client, err := openPlain(k, impatient())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return kafkaOffsets(ctx, kadm.NewClient(client), k.Topic, group)
}

func kafkaOffsets(ctx context.Context, admin *kadm.Client, topic, group string) (map[int32]int64, error) {
	fail := func(err error) error {
		return fmt.Errorf("processor: ask Kafka for the offsets of group %s on %s: %w", group, topic, err)
	}
	stored, err := admin.FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, fail(err)
	}
	offsets := map[int32]int64{}
	for partition, o := range stored[topic] {
		if o.Err != nil {
			return nil, fail(fmt.Errorf("partition %d: %w", partition, o.Err))
		}
		if o.At >= 0 {
			offsets[partition] = o.At
		}
	}
	return offsets, nil
}

// compareKafka says, at the start of a run, where Kafka's offsets and those of
// the ledger differ. It decides nothing, so a Kafka that does not answer is no
// reason to wait, nor to fail.
func (p *Processor) compareKafka(ctx context.Context, client *kgo.Client, db offsets.DB, ledger *offsets.Ledger) {
	ctx, cancel := context.WithTimeout(ctx, driftTimeout)
	defer cancel()
	// Kafka is asked first: what other members do meanwhile moves the ledger
	// before it moves Kafka, and must not look as if Kafka were ahead.
	kafka, err := kafkaOffsets(ctx, kadm.NewClient(client), p.cfg.Kafka.Topic, p.cfg.Group)
	if err != nil {
		p.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "Kafka's own offsets are not compared", slog.Any("reason", err))
		return
	}
	progress, err := ledger.Progress(ctx, db)
	if err != nil {
		p.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "Kafka's own offsets are not compared", slog.Any("reason", err))
		return
	}
	ahead, behind := drifted(progress, kafka)
	if len(ahead) > 0 {
		p.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "Kafka's offset of the group is ahead of the database's; it is never used: "+
			"the database went back, or somebody moved the group; reading goes on where the database stands",
			slog.String("group", p.cfg.Group), slog.String("topic", p.cfg.Kafka.Topic), listed(ahead))
	}
	if len(behind) > 0 {
		p.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "Kafka's offset of the group is behind the database's; it is never used: "+
			"reading goes on where the database stands; to prove that nothing is missing: oncestream replay FILE; "+
			"to read records again: oncestream offsets rewind FILE --to-offset … --reason …",
			slog.String("group", p.cfg.Group), slog.String("topic", p.cfg.Kafka.Topic), listed(behind))
	}
}

// driftTimeout is how long a start waits for what only a log line needs.
const driftTimeout = 2 * time.Second

// drifted returns the partitions at which Kafka is ahead of the ledger, and
// those at which it is behind, each with both positions.
func drifted(progress []offsets.Progress, kafka map[int32]int64) (ahead, behind []string) {
	for _, stored := range progress {
		at, known := kafka[stored.Partition]
		text := fmt.Sprintf("%d: Kafka %d, database %d", stored.Partition, at, stored.Next)
		switch {
		case known && at > stored.Next:
			ahead = append(ahead, text)
		case known && at < stored.Next:
			behind = append(behind, text)
		}
	}
	return ahead, behind
}

// listed are the partitions of a line, the first ten of them.
func listed(partitions []string) slog.Attr {
	const shown = 10
	if n := len(partitions); n > shown {
		partitions = append(partitions[:shown:shown], fmt.Sprintf("and %d more", n-shown))
	}
	return slog.String("partitions", strings.Join(partitions, "; "))
}
