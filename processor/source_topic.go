package processor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// Topic is what a broker says of a topic.
type Topic struct {
	Name      string
	ID        [16]byte
	ClusterID string
	// Partitions are sorted by number.
	Partitions []PartitionRange
}

// PartitionRange is what a partition's log holds: offsets from Start (the
// oldest record kept) to End, of which those below Stable belong to no open
// transaction.
type PartitionRange struct {
	Partition          int32
	Start, Stable, End int64
}

// ErrNoTopic is what InspectTopic answers when the topic does not exist.
var ErrNoTopic = errors.New("the topic does not exist")

// InspectTopic asks the brokers for the topic.
func InspectTopic(ctx context.Context, k Kafka) (Topic, error) {
	client, err := openPlain(k, impatient())
	if err != nil {
		return Topic{}, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return inspect(ctx, client, k)
}

// impatient makes a client give up early enough for the last error, which names
// the cause better than "deadline exceeded" does, to arrive within startTimeout.
func impatient() kgo.Opt { return kgo.RetryTimeout(startTimeout / 2) }

// openPlain returns a client that is member of no group.
func openPlain(k Kafka, more ...kgo.Opt) (*kgo.Client, error) {
	// A topic that was just created, by us or by somebody we wait for, should be
	// seen soon.
	opts := slices.Concat(k.clientOptions(), []kgo.Opt{kgo.MetadataMinAge(metadataAge)}, more, k.Options)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("config: kafka: %w", err)
	}
	return client, nil
}

func inspect(ctx context.Context, client *kgo.Client, k Kafka) (Topic, error) {
	admin := kadm.NewClient(client)
	t := Topic{Name: k.Topic}
	meta, err := admin.Metadata(ctx, k.Topic)
	if err != nil {
		return t, diagnose(k, err)
	}
	t.ClusterID = meta.Cluster
	detail, ok := meta.Topics[k.Topic]
	switch {
	case !ok || errors.Is(detail.Err, kerr.UnknownTopicOrPartition):
		return t, fmt.Errorf("processor: topic %q: %w%s", k.Topic, ErrNoTopic, similar(ctx, admin, k.Topic))
	case detail.Err != nil:
		return t, fmt.Errorf("processor: topic %q: %w", k.Topic, detail.Err)
	}
	t.ID = detail.ID
	return t, t.list(ctx, admin)
}

// list asks for the bounds of every partition.
func (t *Topic) list(ctx context.Context, admin *kadm.Client) error {
	starts, err1 := admin.ListStartOffsets(ctx, t.Name)
	stable, err2 := admin.ListCommittedOffsets(ctx, t.Name)
	ends, err3 := admin.ListEndOffsets(ctx, t.Name)
	if err := errors.Join(err1, err2, err3, starts.Error(), stable.Error(), ends.Error()); err != nil {
		return fmt.Errorf("processor: list the offsets of %s: %w", t.Name, err)
	}
	for p, start := range starts[t.Name] {
		t.Partitions = append(t.Partitions, PartitionRange{p, start.Offset, stable[t.Name][p].Offset, ends[t.Name][p].Offset})
	}
	slices.SortFunc(t.Partitions, func(a, b PartitionRange) int { return int(a.Partition - b.Partition) })
	return nil
}

// similar names the topics that a typing error may have meant.
func similar(ctx context.Context, admin *kadm.Client, name string) string {
	all, err := admin.ListTopics(ctx)
	if err != nil {
		return ""
	}
	names := schema.Similar(name, all.Names())
	if len(names) == 0 {
		return ""
	}
	return " (similar: " + strings.Join(names, ", ") + ")"
}

// diagnose names the likely cause of a connection that fails in a way which
// does not say it itself.
func diagnose(k Kafka, err error) error {
	var record tls.RecordHeaderError
	var verify *tls.CertificateVerificationError
	addresses := strings.Join(k.Brokers, ", ")
	encrypted := k.TLS != nil || k.RenewTLS != nil
	var hint string
	switch {
	case errors.As(err, &record):
		hint = "the listener answered in plain text: it does not speak TLS; leave tls out, or use the address of its TLS listener"
	case errors.As(err, &verify):
		hint = "the broker's certificate is not trusted: give its authority in tls.ca"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		hint = "the broker refused the user or the password in sasl"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		hint = "the broker does not offer sasl.mechanism " + k.SASL.Mechanism
	case errors.Is(err, kerr.IllegalSaslState):
		hint = "the listener does not ask for SASL: leave sasl out, or use the address of its SASL listener"
	case errors.Is(err, io.EOF) && !encrypted && k.SASL.Mechanism == "":
		hint = "the broker closed the connection at the first request: its listener expects TLS (set tls) or SASL (set sasl)"
	case errors.Is(err, io.EOF) && k.SASL.Mechanism != "":
		hint = "the broker closed the connection while we signed in: it refused the user or the password in sasl, or its listener expects TLS or no SASL"
	case errors.Is(err, io.EOF):
		hint = "the broker closed the connection: its listener does not speak TLS (leave tls out), or expects SASL (set sasl)"
	case timedOut(err) && encrypted:
		hint = "no answer to our TLS greeting: the listener does not speak TLS (leave tls out), or the address is wrong"
	case timedOut(err):
		hint = "no answer in time: check the addresses, and whether the listener expects TLS"
	default:
		hint = "is a broker running there?"
	}
	return fmt.Errorf("processor: connect to Kafka at %s: %s: %w", addresses, hint, err)
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// start resolves where the group begins on each partition.
func (k Kafka) start(ctx context.Context, client *kgo.Client, t Topic) ([]offsets.Assigned, error) {
	var after kadm.ListedOffsets
	if k.Start.At == "time" {
		var err error
		if after, err = kadm.NewClient(client).ListOffsetsAfterMilli(ctx, k.Start.Time.UnixMilli(), t.Name); err != nil {
			return nil, fmt.Errorf("processor: list the offsets of %s at %s: %w", t.Name, k.Start.Time.Format(time.RFC3339), err)
		}
	}
	begin := make([]offsets.Assigned, len(t.Partitions))
	for i, p := range t.Partitions {
		begin[i] = offsets.Assigned{Partition: p.Partition, Start: p.Start}
		switch k.Start.At {
		case "latest":
			begin[i].Start = p.End
		case "time":
			begin[i].Start = after[t.Name][p.Partition].Offset
		}
	}
	return begin, nil
}

// awaitTopic inspects the topic, and waits for it to be created unless the
// configuration requires it. Brokers that are away are waited for a minute, as the
// database is; what an answer says about us (TLS, SASL) is final.
func awaitTopic(ctx context.Context, client *kgo.Client, cfg Config) (Topic, error) {
	first, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	deadline := time.Now().Add(reachTimeout)
	for attempt := first; ; attempt = ctx {
		t, err := inspect(attempt, client, cfg.Kafka)
		switch {
		case errors.Is(err, ErrNoTopic) && !cfg.Kafka.RequireTopic:
			cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "the topic does not exist; waiting for it to be created", slog.Any("reason", err))
		case away(err) && time.Now().Before(deadline):
			cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "the brokers cannot be reached; will try again", slog.Duration("pause", topicCheck), slog.Any("reason", err))
		default:
			return t, err
		}
		if err := sleep(ctx, topicCheck); err != nil {
			return t, err
		}
	}
}

// away reports that a broker is not there, or leads nothing yet: nobody listens at
// its address, or a partition waits for its first leader, as one of a thousand does
// for seconds after the topic was created, or for another. A process that gave up
// then would be gone for the sake of one broker of several, or of a deployment that
// creates its topic. A topic that does not exist is [ErrNoTopic] by now.
func away(err error) bool {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" && errors.Is(dial, syscall.ECONNRESET) {
		return true // of a balancer that has nobody behind it
	}
	return errors.Is(err, syscall.ECONNREFUSED) || kerr.IsRetriable(err)
}

const (
	metadataAge  = 250 * time.Millisecond
	startTimeout = 20 * time.Second
	topicCheck   = 2 * time.Second
)

// begin inspects the topic, and stores where the group begins if this is its
// first start.
func (p *Processor) begin(ctx context.Context, pool *pgxpool.Pool, ledger *offsets.Ledger) (Topic, error) {
	client, err := openPlain(p.cfg.Kafka, impatient())
	if err != nil {
		return Topic{}, err
	}
	defer client.Close()
	topic, err := awaitTopic(ctx, client, p.cfg)
	if err != nil {
		return topic, err
	}
	err = p.untilReachable(ctx, func(ctx context.Context) error {
		if err := ledger.EnterEnvironment(ctx, pool, p.cfg.Environment, p.cfg.Owner); err != nil {
			return err
		}
		started, err := ledger.Started(ctx, pool)
		if err != nil || started {
			return err
		}
		return p.firstStart(ctx, client, pool, ledger, topic)
	})
	if err == nil {
		p.compareKafka(ctx, client, pool, ledger)
	}
	return topic, err
}

func (p *Processor) firstStart(ctx context.Context, client *kgo.Client, pool *pgxpool.Pool, ledger *offsets.Ledger, topic Topic) error {
	begin, err := p.cfg.Kafka.start(ctx, client, topic)
	if err != nil {
		return err
	}
	decided, err := ledger.Start(ctx, pool, topic.identity(), begin)
	if decided {
		p.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "first start: the beginning of each partition is stored",
			slog.String("topic", topic.Name), slog.String("start", p.cfg.Kafka.Start.At), slog.Int("partitions", len(begin)))
	}
	return err
}

func (t Topic) identity() offsets.Identity {
	return offsets.Identity{ClusterID: t.ClusterID, TopicID: t.ID}
}
