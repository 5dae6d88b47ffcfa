package torture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// Faults that take brokers which replicate.
func clusterFaults() []Fault {
	return []Fault{
		{Row: 17, Name: "leader-kill", What: "kill -9 of the broker that leads the busiest partition, and started", Cluster: true, lane: services, strike: killLeader},
		{Row: 18, Name: "log-cut", What: "a leader elected that lacks what was handled; the halt resolved by the printed command", Cluster: true, lane: services, strike: cutLog},
	}
}

// killLeader kills the leader of the partition with the most records. Another one
// must lead it, in a later epoch.
func killLeader(ctx context.Context, w *world, d *dice) (string, bool, error) {
	ends, err := w.kafka.ends(ctx)
	if err != nil {
		return "", false, err
	}
	busiest := slices.MaxFunc(slices.Sorted(maps.Keys(ends)), func(a, b int32) int { return int(ends[a] - ends[b]) })
	before, err := w.partition(ctx, busiest)
	if err != nil || before.Leader < 1 {
		return "nobody leads the busiest partition", false, err
	}
	leader := int(before.Leader - 1)
	if err := w.kafka.down(leader, w.kafka.real[leader].Kill); err != nil {
		return "", false, err
	}
	after, err := w.awaitPartition(ctx, busiest, "another leader", func(p kadm.PartitionDetail) bool {
		return p.Leader >= 0 && p.LeaderEpoch > before.LeaderEpoch
	})
	_ = pause(ctx, time.Duration(d.IntN(4000))*time.Millisecond) // it is started also when the run is called off
	err = errors.Join(err, w.kafka.up(context.WithoutCancel(ctx), leader))
	return fmt.Sprintf("partition %d: broker %d led in epoch %d, then %d in %d", busiest, before.Leader, before.LeaderEpoch, after.Leader, after.LeaderEpoch), true, err
}

// partition is what the brokers say of a partition.
func (w *world) partition(ctx context.Context, p int32) (kadm.PartitionDetail, error) {
	all, err := w.kafka.details(ctx)
	return all.Partitions[p], err
}

// electing is how long a cluster may take to change who leads, or follows: brokers
// that have just started share two cores with all the rest.
const electing = time.Minute

// awaitPartition waits until a partition is as it is to be.
func (w *world) awaitPartition(ctx context.Context, p int32, what string, is func(kadm.PartitionDetail) bool) (last kadm.PartitionDetail, err error) {
	err = w.until(ctx, electing, fmt.Sprintf("%s of partition %d", what, p), func(ctx context.Context) (bool, error) {
		now, err := w.partition(ctx, p)
		if err != nil {
			return false, nil //nolint:nilerr // brokers come and go meanwhile
		}
		last = now
		return is(now), nil
	})
	return last, err
}

// cutRecords is how many records are lost with the leader.
const cutRecords = 40

// cut is a log that is to be cut: a partition with two replicas, and where it is
// cut.
type cut struct {
	partition        int32
	leader, follower int32
	at               int64
}

// cutLog has a partition's log lose records that were handled: its follower is
// killed, more is sent and handled, the leader is killed, and the follower, which
// knows nothing of it, must lead. The worker must not go on in another log.
func cutLog(ctx context.Context, w *world, d *dice) (string, bool, error) {
	w.changes.Lock()
	defer w.changes.Unlock()
	if err := w.settle(ctx); err != nil {
		return "", false, err
	}
	release, err := w.producer.hold(ctx)
	if err != nil {
		return "", false, err
	}
	c, hit, err := w.makeCut(ctx, int32(d.IntN(w.Partitions)))
	release()
	if err == nil && hit {
		err = w.resolveCut(ctx, c)
	}
	return fmt.Sprintf("partition %d at %d, broker %d and then %d led", c.partition, c.at, c.leader, c.follower), hit, errors.Join(err, w.mend(ctx, c))
}

// makeCut does all up to the election, and reports whether records that were
// handled are gone.
func (w *world) makeCut(ctx context.Context, p int32) (c cut, hit bool, err error) {
	if c, err = w.pair(ctx, p); err != nil {
		return c, false, err
	}
	if err := w.kill(c.follower); err != nil {
		return c, false, err
	}
	if _, err = w.awaitPartition(ctx, p, "a leader alone", func(d kadm.PartitionDetail) bool { return len(d.ISR) == 1 }); err != nil {
		return c, false, err
	}
	if err := w.producer.sendTo(ctx, p, cutRecords); err != nil {
		return c, false, err
	}
	if hit, err = w.passesCut(ctx, c); err != nil {
		return c, hit, err
	}
	if err := w.readLog(ctx); err != nil {
		return c, hit, err
	}
	if err := w.kill(c.leader); err != nil {
		return c, hit, err
	}
	if err := w.kafka.up(context.WithoutCancel(ctx), int(c.follower-1)); err != nil {
		return c, hit, err
	}
	if _, err = w.awaitPartition(ctx, p, "the other leader", func(d kadm.PartitionDetail) bool { return d.Leader == c.follower }); err != nil {
		return c, hit, err
	}
	w.newLog(p, c.at)
	return c, hit, nil
}

// kill kills the broker with this number.
func (w *world) kill(node int32) error {
	return w.kafka.down(int(node-1), w.kafka.real[node-1].Kill)
}

// pair leaves a partition its leader and one follower, and lets the follower lead
// although it lacks records.
func (w *world) pair(ctx context.Context, p int32) (c cut, err error) {
	now, err := w.awaitPartition(ctx, p, "all replicas in sync", func(d kadm.PartitionDetail) bool { return len(d.ISR) == len(w.kafka.real) && d.Leader > 0 })
	if err != nil {
		return c, err
	}
	c = cut{partition: p, leader: now.Leader, follower: 1 + now.Leader%int32(len(w.kafka.real))}
	if err = w.place(ctx, p, []int32{c.leader, c.follower}, "true", "1"); err != nil {
		return c, err
	}
	ends, err := w.kafka.ends(ctx)
	c.at = ends[p]
	return c, err
}

// place gives a partition replicas, and the topic its rules for who may lead.
func (w *world) place(ctx context.Context, p int32, replicas []int32, unclean, inSync string) error {
	err := w.kafka.admin(func(adm *kadm.Client) error {
		answers, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{
			{Name: "unclean.leader.election.enable", Value: &unclean}, {Name: "min.insync.replicas", Value: &inSync},
		}, topic)
		for _, a := range answers {
			err = errors.Join(err, a.Err)
		}
		if err != nil {
			return err
		}
		var to kadm.AlterPartitionAssignmentsReq
		to.Assign(topic, p, replicas)
		moved, err := adm.AlterPartitionAssignments(ctx, to)
		if err == nil {
			err = moved.Error()
		}
		return err
	})
	if err == nil {
		_, err = w.awaitPartition(ctx, p, "its replicas", func(d kadm.PartitionDetail) bool {
			return len(d.Replicas) == len(replicas) && len(d.ISR) == len(replicas)
		})
	}
	return err
}

// passesCut waits until records behind the cut are handled, for a while.
func (w *world) passesCut(ctx context.Context, c cut) (bool, error) {
	late := w.until(ctx, 3*patience, "records behind the cut to be handled", func(ctx context.Context) (bool, error) {
		next, err := w.stands(ctx, c.partition)
		return err == nil && next == c.at+cutRecords, nil
	})
	next, err := w.stands(ctx, c.partition)
	if late != nil && ctx.Err() != nil {
		return false, late
	}
	return next > c.at, err
}

// stands is where a partition stands.
func (w *world) stands(ctx context.Context, p int32) (next int64, err error) {
	err = w.pool.QueryRow(ctx, `select next_offset from oncestream.consumer_offset where partition = $1`, p).Scan(&next)
	return next, err
}

// resolveCut awaits the halt and resolves it as it says itself.
func (w *world) resolveCut(ctx context.Context, c cut) error {
	h := check.Halt{Partition: c.partition, Code: "log_truncated"}
	at, err := w.awaitHalt(ctx, &h)
	if err != nil {
		return err
	}
	if h.Seen == "beyond_end" { // as long as the new log is the shorter one
		h.Code = h.Seen
	}
	h.At = min(max(at, c.at+1), c.at+cutRecords)
	w.halted(h)
	return w.command(ctx, "offsets", "rewind", w.workers[0].file, "--partition", fmt.Sprint(c.partition), "--to-offset", fmt.Sprint(c.at),
		"--reason", "torture: an unclean election has cut the log", "--yes")
}

// mend starts who was killed, and has all brokers replicate the partition again.
func (w *world) mend(ctx context.Context, c cut) error {
	ctx = context.WithoutCancel(ctx)
	if c.leader < 1 {
		return nil
	}
	for _, node := range []int32{c.follower, c.leader} {
		if err := w.kafka.up(ctx, int(node-1)); err != nil {
			return err
		}
	}
	var all []int32
	for n := range w.kafka.real {
		all = append(all, int32(n+1))
	}
	return w.place(ctx, c.partition, all, "false", fmt.Sprint(len(all)-1))
}

// sendTo sends records of the workload to one partition, and waits until they are
// there.
func (p *producer) sendTo(ctx context.Context, partition int32, records int) error {
	client, err := p.kafka.client()
	if err != nil {
		return err
	}
	defer client.Close()
	var batch []*kgo.Record
	for range records {
		r, payload := p.next()
		r.Partition = partition
		batch = append(batch, p.record(r, payload))
	}
	return client.ProduceSync(ctx, batch...).FirstErr()
}
