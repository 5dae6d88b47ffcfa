package processor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Lookout asks the brokers, again and again over one connection to each, for
// what an operator wants to know of a group. It is a member of no group.
type Lookout struct {
	client *kgo.Client
	kafka  Kafka
}

// OpenLookout returns a lookout on the configuration's topic. It connects to
// nothing yet.
func OpenLookout(k Kafka) (*Lookout, error) {
	client, err := openPlain(k, impatient())
	if err != nil {
		return nil, err
	}
	return &Lookout{client: client, kafka: k}, nil
}

// Close ends the connections.
func (l *Lookout) Close() { l.client.Close() }

// Topic is InspectTopic.
func (l *Lookout) Topic(ctx context.Context) (Topic, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return inspect(ctx, l.client, l.kafka)
}

// KafkaOffsets is the function of that name.
func (l *Lookout) KafkaOffsets(ctx context.Context, group string) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return kafkaOffsets(ctx, kadm.NewClient(l.client), l.kafka.Topic, group)
}

// Forecasts says for each partition of next, which are the stored offsets, when
// retention reaches it. Now is the present, by the database's clock. To know the
// age of the record at an offset it fetches that record, from the partitions that
// have unread records only, and of topics that remove records only.
//
// What the brokers do not tell (a configuration that we may not read, a record
// that does not come) makes a forecast unknown and is no error.
func (l *Lookout) Forecasts(ctx context.Context, t Topic, next map[int32]int64, now time.Time) ([]Forecast, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	standings := map[int32]*standing{}
	for _, p := range t.Partitions {
		if at, ok := next[p.Partition]; ok {
			standings[p.Partition] = &standing{next: at, log: p, size: -1}
		}
	}
	r, why := l.retention(ctx, t.Name)
	if why == "" && r.limited() {
		if err := l.date(ctx, r, standings); err != nil {
			return nil, fmt.Errorf("processor: read the age of records of %s: %w", t.Name, err)
		}
	}
	var all []Forecast
	for _, p := range slices.Sorted(maps.Keys(standings)) {
		f := r.forecast(*standings[p], now)
		if why != "" && f.Outlook != OutlookLost && f.Outlook != OutlookNone {
			f.Outlook, f.Why = OutlookUnknown, why
		}
		all = append(all, f)
	}
	return all, nil
}

// retention reads the topic's configuration, or says why it cannot.
func (l *Lookout) retention(ctx context.Context, topic string) (r retention, why string) {
	configs, err := kadm.NewClient(l.client).DescribeTopicConfigs(ctx, topic)
	if err == nil && len(configs) == 1 {
		err = configs[0].Err
	}
	if err != nil || len(configs) != 1 {
		return r, fmt.Sprintf("the topic's configuration could not be read: %v", err)
	}
	r = retention{byTime: -1, byBytes: -1, deletes: true}
	for _, c := range configs[0].Configs {
		switch number, _ := strconv.ParseInt(c.MaybeValue(), 10, 64); c.Key {
		case "cleanup.policy":
			r.deletes, r.compacts = strings.Contains(c.MaybeValue(), "delete"), strings.Contains(c.MaybeValue(), "compact")
		case "retention.ms":
			// A retention of centuries, which some write for "for ever", does not
			// fit in a duration.
			r.byTime = time.Duration(min(number, farAway.Milliseconds())) * time.Millisecond
		case "retention.bytes":
			r.byBytes = number
		}
	}
	return r, ""
}

// date fills in the times of the records that the forecast rests on, and where
// the size of the log matters, that.
func (l *Lookout) date(ctx context.Context, r retention, standings map[int32]*standing) error {
	next, start := map[int32]int64{}, map[int32]int64{}
	for p, s := range standings {
		if s.reading() {
			next[p], start[p] = s.next, s.log.Start
		}
	}
	at, err := l.times(ctx, next)
	if err != nil {
		return err
	}
	var first map[int32]time.Time
	var sizes map[int32]int64
	if r.byBytes >= 0 {
		if first, err = l.times(ctx, start); err != nil {
			return err
		}
		sizes = l.sizes(ctx, slices.Collect(maps.Keys(start)))
	}
	for p, s := range standings {
		s.at, s.first = at[p], first[p]
		if size, ok := sizes[p]; ok {
			s.size = size
		}
	}
	return nil
}

// times fetches one record of each partition, the first at the offset or behind
// it, and returns their times. What has no time, or does not come, is left out.
// It reads what is not stable yet, too: that ages as well.
func (l *Lookout) times(ctx context.Context, at map[int32]int64) (map[int32]time.Time, error) {
	times := map[int32]time.Time{}
	if len(at) == 0 {
		return times, nil
	}
	from := map[int32]kgo.Offset{}
	for p, offset := range at {
		from[p] = kgo.NewOffset().At(offset)
	}
	client, err := openPlain(l.kafka, impatient(), kgo.KeepControlRecords(), kgo.FetchMaxPartitionBytes(oneRecord),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{l.kafka.Topic: from}), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, datePatience)
	defer cancel()
	for left := len(at); left > 0 && ctx.Err() == nil; {
		fetches := client.PollFetches(ctx)
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			_, asked := at[p.Partition]
			if _, seen := times[p.Partition]; !asked || seen || len(p.Records) == 0 && p.Err == nil {
				return
			}
			times[p.Partition] = timeOf(p.Records)
			left--
			client.PauseFetchPartitions(map[string][]int32{l.kafka.Topic: {p.Partition}})
		})
	}
	maps.DeleteFunc(times, func(_ int32, t time.Time) bool { return t.IsZero() })
	return times, nil
}

const (
	// oneRecord is as much as a broker is asked for; it sends one batch at least.
	oneRecord = 16 << 10
	// datePatience is how long one look waits for the records.
	datePatience = 5 * time.Second
)

// timeOf is the time of the first record, zero where there is none: a partition
// that answers with an error, and a record from before records had times.
func timeOf(records []*kgo.Record) time.Time {
	if len(records) == 0 || records[0].Timestamp.UnixMilli() < 0 {
		return time.Time{}
	}
	return records[0].Timestamp
}

// sizes asks the brokers for the size of each partition's log. It needs a right
// of its own (DESCRIBE on the cluster); without it nothing is known.
func (l *Lookout) sizes(ctx context.Context, partitions []int32) map[int32]int64 {
	sizes := map[int32]int64{}
	asked := kadm.TopicsSet{}
	asked.Add(l.kafka.Topic, partitions...)
	all, err := kadm.NewClient(l.client).DescribeAllLogDirs(ctx, asked)
	if err != nil && len(all) == 0 {
		return sizes
	}
	for _, broker := range all {
		broker.EachPartition(func(p kadm.DescribedLogDirPartition) {
			if !p.IsFuture {
				sizes[p.Partition] = max(sizes[p.Partition], p.Size)
			}
		})
	}
	return sizes
}
