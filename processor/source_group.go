package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/singleflight"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// groupSource reads the topic as a member of the consumer group.
//
// Three things keep a record from reaching a worker under a wrong position:
//
//   - Rebalances wait while a poll's records are routed (BlockRebalanceOnPoll),
//     so what was polled goes to the workers of the assignment it was polled
//     under, and kgo drops what it has buffered of a partition that is revoked.
//   - A partition is paused and its queue closed until its worker's claim is in
//     place. Then the position is set, by the goroutine that polls and between
//     two polls, and the queue opened in the same breath: what is polled after
//     that lies behind the claim, and what was polled before is dropped.
//   - The queue drops what lies before its position.
//
// The position is set here and not in AdjustFetchOffsetsFn because a claim may
// have to wait for a predecessor's transaction: other partitions of the same
// assignment must not wait with it, and a worker that was fenced sets its
// position the same way.
type groupSource struct {
	e     *engine
	topic string

	// client is replaced by the polling goroutine only, which therefore reads it
	// as it is; all others ask kafka, and wait there while it is being created:
	// the callbacks may come before NewClient has returned.
	clientMu sync.RWMutex
	client   *kgo.Client
	// interrupt ends whatever the client still waits for.
	interrupt context.CancelFunc
	member    instance // of the polling goroutine
	rejoin    sync.Once
	lists     singleflight.Group // for listShared

	mu       sync.Mutex
	commands []func()
	wake     context.CancelFunc // ends the poll in progress
}

// openGroup creates the client and makes it the engine's source. It joins the
// group at once, so the workers of the first assignment may start before this
// returns.
func openGroup(e *engine) error {
	s := &groupSource{e: e, topic: e.cfg.Kafka.Topic}
	if err := s.chooseMember(); err != nil {
		return err
	}
	e.source = s
	if err := s.join(); err != nil {
		s.member.release()
		return err
	}
	return nil
}

// options are those of a client that is a member of the group.
func (s *groupSource) options() []kgo.Opt {
	opts := slices.Concat(s.e.cfg.Kafka.clientOptions(), s.memberOptions(), []kgo.Opt{
		kgo.ConsumeTopics(s.topic),
		kgo.BlockRebalanceOnPoll(),
		kgo.MetadataMaxAge(metadataMaxAge),
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(time.Second),
		kgo.OnPartitionsAssigned(s.assigned),
		kgo.OnPartitionsRevoked(s.revoked),
		kgo.OnPartitionsLost(s.lost),
		kgo.AdjustFetchOffsetsFn(placeholders),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.KeepControlRecords(),
	})
	if !s.e.cfg.Kafka.ReadUncommitted {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	return append(opts, s.e.cfg.Kafka.Options...)
}

// metadataMaxAge is the time until partitions that are added are noticed. The
// client's own age of five minutes would be their delay.
const metadataMaxAge = 10 * time.Second

// placeholders replaces the group's own offsets: what Kafka has stored decides
// nothing. The partitions are paused, so nothing is fetched from here.
func placeholders(_ context.Context, fetched map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for _, partitions := range fetched {
		for p := range partitions {
			partitions[p] = kgo.NewOffset().At(0)
		}
	}
	return fetched, nil
}

func (s *groupSource) assigned(_ context.Context, client *kgo.Client, added map[string][]int32) {
	client.PauseFetchPartitions(added)
	s.e.assigned(added[s.topic])
	s.rejoinOnce()
}

func (s *groupSource) revoked(ctx context.Context, client *kgo.Client, removed map[string][]int32) {
	s.e.released(removed[s.topic])
	s.flush(ctx, client)
}

// lost is revoked without a group to commit to: the session has ended, and the
// partitions may have new owners already. The fence takes care of them.
func (s *groupSource) lost(ctx context.Context, _ *kgo.Client, removed map[string][]int32) {
	if len(removed[s.topic]) == 0 {
		return // an attempt to join that failed
	}
	s.e.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "lost ownership of partitions: the group session has ended; going on with what the group assigns next",
		slog.String("topic", s.topic), slog.Any("partitions", removed[s.topic]))
	s.e.released(removed[s.topic])
}

// flush tells Kafka the offsets of what was committed, for lag tools; nothing
// reads them to decide anything, so a failure is only logged.
func (s *groupSource) flush(ctx context.Context, client *kgo.Client) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		s.e.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "Kafka was not told the last offsets; lag tools will be behind", slog.Any("reason", err))
	}
}

const closeTimeout = 3 * time.Second

// run polls until ctx ends or the client cannot go on.
func (s *groupSource) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.waitForRoom(ctx); err != nil {
			return nil //nolint:nilerr // the end of ctx is the normal end
		}
		poll := s.nextPoll(ctx)
		fetches := s.client.PollRecords(poll, maxPoll)
		err := s.route(fetches)
		s.obey()
		s.client.AllowRebalance()
		if errors.Is(err, errNotOurInstance) {
			err = s.becomeDynamic(err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxPoll bounds how long a rebalance waits for one poll's routing.
const maxPoll = 20_000

// maxQueued bounds the memory of all queues together, whatever the number of
// partitions.
const maxQueued = 64 << 20

// waitForRoom waits while the queues of all partitions hold too much.
func (s *groupSource) waitForRoom(ctx context.Context) error {
	for s.e.queued() >= maxQueued {
		if err := sleep(ctx, roomCheck); err != nil {
			return err
		}
	}
	return nil
}

const roomCheck = 5 * time.Millisecond

// nextPoll returns the context of the next poll, which ends early when there is
// a command to obey.
func (s *groupSource) nextPoll(ctx context.Context) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake != nil {
		s.wake()
	}
	poll, cancel := context.WithCancel(ctx)
	s.wake = cancel
	if len(s.commands) > 0 {
		cancel()
	}
	return poll
}

// command has the polling goroutine do something between two polls.
func (s *groupSource) command(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, f)
	if s.wake != nil {
		s.wake()
	}
}

func (s *groupSource) obey() {
	s.mu.Lock()
	commands := s.commands
	s.commands = nil
	s.mu.Unlock()
	for _, f := range commands {
		f()
	}
}

// ifServed runs f between two polls if w still serves its partition then.
func (s *groupSource) ifServed(w *worker, f func()) {
	s.command(func() {
		if s.e.worker(w.partition) == w {
			f()
		}
	})
}

// seek has the partition read from the claim's position into the worker's
// queue. The epoch lets the client find out that the log was truncated below
// the position (KIP-320).
func (s *groupSource) seek(w *worker, c offsets.Claim) {
	s.ifServed(w, func() {
		s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{s.topic: {c.Partition: {Epoch: c.LeaderEpoch, Offset: c.Next}}})
		w.queue.openAt(c.Next)
		w.paused.Store(false)
		s.client.ResumeFetchPartitions(map[string][]int32{s.topic: {c.Partition}})
	})
}

// shut closes the worker's queue and stops reading its partition.
func (s *groupSource) shut(w *worker) {
	w.queue.shut()
	s.ifServed(w, func() { s.pause(w.partition) })
}

func (s *groupSource) pause(partition int32) {
	s.client.PauseFetchPartitions(map[string][]int32{s.topic: {partition}})
}

// roomAgain resumes a partition that was paused because its queue was full, if
// there is room again. The partition is paused and resumed by the polling
// goroutine only, so that the flag and the client agree.
func (s *groupSource) roomAgain(w *worker) {
	if w.paused.Load() && w.queue.roomy() {
		s.ifServed(w, func() { s.resumeIfRoomy(w) })
	}
}

func (s *groupSource) resumeIfRoomy(w *worker) {
	if w.paused.Load() && w.queue.roomy() {
		w.paused.Store(false)
		s.client.ResumeFetchPartitions(map[string][]int32{s.topic: {w.partition}})
		call2(s.e.cfg.Hooks.Resumed, s.topic, w.partition)
	}
}

// publish marks the position for Kafka's own offset, which is written behind. A
// verification has no source, as it reads for no group.
func (s *groupSource) publish(w *worker, c offsets.Claim) {
	if s == nil {
		return
	}
	s.kafka().MarkCommitOffsets(map[string]map[int32]kgo.EpochOffset{s.topic: {w.partition: {Epoch: c.LeaderEpoch, Offset: c.Next}}})
}

// route hands what was polled to the workers. It never waits.
func (s *groupSource) route(fetches kgo.Fetches) error {
	var fatal error
	records := 0
	fetches.EachTopic(func(t kgo.FetchTopic) {
		for i := range t.Partitions {
			p := &t.Partitions[i]
			if p.Err != nil {
				fatal = errors.Join(fatal, s.failed(p.Partition, p.Err))
			}
			if len(p.Records) > 0 {
				records += len(p.Records)
				s.deliver(t.TopicID, p)
			}
		}
	})
	if records > 0 {
		call(s.e.cfg.Hooks.Polled, records)
	}
	return fatal
}

func (s *groupSource) deliver(id [16]byte, p *kgo.FetchPartition) {
	w := s.e.worker(p.Partition)
	if w == nil {
		return
	}
	var none [16]byte
	if id != none && s.e.identity.TopicID != none && id != s.e.identity.TopicID {
		s.e.suspect()
		s.doubt(p.Partition, errors.New("records of another topic id came"))
		return
	}
	dropped, pause := w.queue.push(newChunk(s.e.identity, p.Records, time.Now()))
	if dropped > 0 && s.e.cfg.Hooks.Dropped != nil {
		s.e.cfg.Hooks.Dropped(s.topic, p.Partition, dropped)
	}
	if pause && !w.paused.Load() {
		w.paused.Store(true)
		s.pause(p.Partition)
		call2(s.e.cfg.Hooks.Paused, s.topic, p.Partition)
		s.resumeIfRoomy(w) // the worker may have emptied the queue before it could see the flag
	}
}

// newChunk copies the records out of the client's own type. Transaction markers
// are no records, but they move the position.
func newChunk(id offsets.Identity, polled []*kgo.Record, arrived time.Time) chunk {
	c := chunk{records: make([]schema.Record, 0, len(polled)), arrived: arrived}
	for _, r := range polled {
		c.end, c.leaderEpoch = r.Offset+1, r.LeaderEpoch
		if r.Attrs.IsControl() {
			continue
		}
		c.records = append(c.records, newRecord(id, r))
		c.bytes += size(&c.records[len(c.records)-1])
	}
	return c
}

func newRecord(id offsets.Identity, r *kgo.Record) schema.Record {
	var headers []schema.Header
	if len(r.Headers) > 0 {
		headers = make([]schema.Header, len(r.Headers))
		for i, h := range r.Headers {
			headers[i] = schema.Header{Key: h.Key, Value: h.Value}
		}
	}
	return schema.Record{
		Topic: r.Topic, TopicID: id.TopicID, ClusterID: id.ClusterID, Partition: r.Partition, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch,
		Time: r.Timestamp, Key: r.Key, Value: r.Value, Headers: headers,
	}
}

// failed sorts the errors of a poll. An error that is returned ends the run.
func (s *groupSource) failed(partition int32, err error) error {
	var loss *kgo.ErrDataLoss
	var session *kgo.ErrGroupSession
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, kgo.ErrClientClosed):
		return nil
	case errors.As(err, &loss):
		s.doubt(partition, loss)
	case errors.Is(err, kerr.OffsetOutOfRange):
		s.e.suspect()
		s.doubt(partition, err)
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
		s.e.suspect()
		s.e.cfg.Logger.LogAttrs(s.e.ctx, slog.LevelDebug, "a fetch failed; looking whether the topic is still the same", slog.Int("partition", int(partition)), slog.Any("reason", err))
	case errors.Is(err, kerr.FencedInstanceID):
		return s.fenced(err)
	case errors.Is(err, kerr.UnreleasedInstanceID):
		return s.refused(err)
	case errors.Is(err, kerr.GroupAuthorizationFailed), errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.SaslAuthenticationFailed):
		return fmt.Errorf("processor: read %s as group %s: %w", s.topic, s.e.cfg.Group, err)
	case errors.As(err, &session):
		s.e.cfg.Logger.LogAttrs(s.e.ctx, slog.LevelWarn, "the group session ended; joining again", slog.Any("reason", err))
	default:
		s.e.cfg.Logger.LogAttrs(s.e.ctx, slog.LevelWarn, "a fetch failed; fetching again", slog.Int("partition", int(partition)), slog.Any("reason", err))
	}
	return nil
}

// close lets go of every partition, tells Kafka where they stand and leaves the
// group, so that others can take over at once.
func (s *groupSource) close() {
	s.e.released(s.e.all())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.e.ctx), closeTimeout)
	defer cancel()
	s.flush(ctx, s.client)
	s.client.AllowRebalance()
	if err := s.leave(ctx); err != nil {
		s.e.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "the group was not told of our leave; it will notice by itself", slog.Any("reason", err))
	}
	s.closeClient()
	s.member.release()
}

// closeClient does not wait for a join whose answer is due: the coordinator holds
// it back until all members have joined, which takes as long as the slowest of
// them may drain.
func (s *groupSource) closeClient() {
	s.interrupt()
	s.client.CloseAllowingRebalance()
}
