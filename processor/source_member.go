package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// heartbeats is how many heartbeats a session has. A member learns of a
// rebalance by its next heartbeat, so they bound how long a partition that was
// let go has no owner; each costs the broker next to nothing.
const heartbeats = 20

// memberOptions are how this process is a member of the group.
func (s *groupSource) memberOptions() []kgo.Opt {
	k := s.e.cfg.Kafka
	opts := []kgo.Opt{
		kgo.ConsumerGroup(s.e.cfg.Group),
		kgo.SessionTimeout(k.SessionTimeout),
		kgo.HeartbeatInterval(k.SessionTimeout / heartbeats),
		kgo.RebalanceTimeout(s.e.cfg.DrainTimeout + rebalanceReserve),
		kgo.Balancers(k.balancer()),
	}
	if k.GroupProtocol == GroupProtocolConsumer {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	if s.member.id != "" {
		opts = append(opts, kgo.InstanceID(s.member.id))
	}
	return opts
}

// balancer is the client's balancer, or in the consumer protocol the one that
// stands for the server's.
func (k Kafka) balancer() kgo.GroupBalancer {
	switch k.Balancer {
	case "range":
		return kgo.RangeBalancer()
	case "roundrobin":
		return kgo.RoundRobinBalancer()
	case "sticky":
		return kgo.StickyBalancer()
	}
	if k.GroupProtocol == GroupProtocolConsumer {
		return kgo.StickyBalancer()
	}
	return kgo.CooperativeStickyBalancer()
}

// join creates the client, which joins the group at once. Who asks for the
// client meanwhile, as the workers of the first assignment do, waits.
func (s *groupSource) join() error {
	s.clientMu.Lock()
	defer s.clientMu.Unlock()
	ctx, interrupt := context.WithCancel(context.WithoutCancel(s.e.ctx))
	client, err := kgo.NewClient(append(s.options(), kgo.WithContext(ctx))...)
	if err != nil {
		interrupt()
		return fmt.Errorf("config: kafka: %w", err)
	}
	s.client, s.interrupt = client, interrupt
	s.e.cfg.Logger.LogAttrs(s.e.ctx, slog.LevelDebug, "joining the group", slog.String("group", s.e.cfg.Group), slog.String("instance_id", s.member.id))
	return nil
}

// kafka returns the client that is a member of the group now.
func (s *groupSource) kafka() *kgo.Client {
	s.clientMu.RLock()
	defer s.clientMu.RUnlock()
	return s.client
}

// chooseMember decides under which name this process joins, and readies the
// group for that.
func (s *groupSource) chooseMember() (err error) {
	k := s.e.cfg.Kafka
	if s.member, err = here().choose(k, s.e.cfg.Group); err != nil {
		if k.InstanceID != InstanceAuto {
			return err
		}
		s.e.cfg.Logger.LogAttrs(s.e.ctx, slog.LevelDebug, "no instance id can be chosen here; joining as a dynamic member", slog.Any("reason", err))
	}
	if k.GroupProtocol != GroupProtocolConsumer {
		return nil
	}
	if err := s.readyConsumerGroup(); err != nil {
		s.member.release()
		return err
	}
	return nil
}

// readyConsumerGroup checks that the brokers know the consumer protocol, and
// has them let go of a dead process that had our instance id. The classic
// protocol needs neither.
func (s *groupSource) readyConsumerGroup() error {
	client, err := openPlain(s.e.cfg.Kafka, impatient())
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(s.e.ctx, startTimeout)
	defer cancel()
	if err := checkProtocol(ctx, client); err != nil {
		return err
	}
	if err := s.replaceDead(ctx, client); err != nil {
		s.e.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "the group could not be told that a member of our instance id is dead; it will notice by itself", slog.Any("reason", err))
	}
	return nil
}

// errNotOurInstance tells that another process joined with our instance id.
var errNotOurInstance = errors.New("the instance id is used by another member of the group")

// fenced is another member that has joined with our instance id: under one that
// was configured somebody has to decide who of the two it belongs to.
func (s *groupSource) fenced(cause error) error {
	if s.member.automatic {
		return fmt.Errorf("%w: %w", errNotOurInstance, cause)
	}
	return fmt.Errorf("processor: instance id %q is used by another member of group %s; each process needs its own: %w", s.member.id, s.e.cfg.Group, cause)
}

// refused is another member that has our instance id, in the consumer protocol.
// It may be dead, which its session will show.
func (s *groupSource) refused(cause error) error {
	if s.member.automatic {
		return fmt.Errorf("%w: %w", errNotOurInstance, cause)
	}
	s.e.cfg.Logger.LogAttrs(s.e.ctx, slog.LevelWarn, "the group has a member with our instance id; trying again until its session has ended",
		slog.String("instance_id", s.member.id), slog.Any("reason", cause))
	return nil
}

// becomeDynamic joins the group anew, without the instance id that was chosen
// for us and that another process uses, as a clone of this machine would.
func (s *groupSource) becomeDynamic(cause error) error {
	s.e.cfg.Logger.LogAttrs(s.e.ctx, slog.LevelWarn, "another process uses the instance id that was chosen for this one; going on as a dynamic member",
		slog.String("instance_id", s.member.id), slog.Any("reason", cause))
	s.e.released(s.e.all())
	s.closeClient()
	s.member.release()
	s.member = instance{}
	return s.join()
}

// rejoinOnce has a static member of a cooperative group join a second time.
//
// Such a group moves a partition in two rebalances: its owner lets it go in the
// first, and joins again for the second, which gives it away. An owner that is
// killed in between and comes back under its instance id gets what it was
// assigned, without a rebalance, and nobody would ask for the second. Owned
// partitions are part of the request, so this one is never taken for the same.
func (s *groupSource) rejoinOnce() {
	k := s.e.cfg.Kafka
	if s.member.id == "" || k.GroupProtocol != GroupProtocolClassic || k.Balancer != "cooperative-sticky" {
		return
	}
	s.rejoin.Do(func() { s.command(func() { s.client.ForceRebalance() }) })
}

// checkProtocol answers an error unless the brokers know the consumer protocol:
// the client would fall back to the classic one, whose groups behave otherwise.
func checkProtocol(ctx context.Context, client *kgo.Client) error {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "oncestream", "1"
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("processor: ask for the brokers' versions: %w", err)
	}
	for _, api := range resp.ApiKeys {
		if api.ApiKey == int16(kmsg.ConsumerGroupHeartbeat) && api.MaxVersion >= 1 {
			return nil
		}
	}
	return errors.New(`config: kafka.group_protocol: these brokers do not know it, it needs Kafka 4.0 or later; use "classic" (got "consumer")`)
}

// replaceDead has the brokers let go of a dead process that had our instance id
// under the consumer protocol: where the classic one lets its successor take its
// place, this one refuses the successor until the session has ended. That the
// process is dead is known from the lock.
func (s *groupSource) replaceDead(ctx context.Context, client *kgo.Client) error {
	if s.member.unlock == nil {
		return nil
	}
	groups, err := kadm.NewClient(client).DescribeConsumerGroups(ctx, s.e.cfg.Group)
	if err != nil {
		return err
	}
	for _, m := range groups[s.e.cfg.Group].Members {
		if m.InstanceID != nil && *m.InstanceID == s.member.id {
			return s.consumerLeave(ctx, client, m.MemberID, staysReserved)
		}
	}
	return nil
}

// The epochs by which a member of the consumer protocol leaves.
const (
	leavesForGood = -1
	staysReserved = -2 // its partitions wait for the next member of the instance id
)

func (s *groupSource) consumerLeave(ctx context.Context, client *kgo.Client, memberID string, epoch int32) error {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.InstanceID = s.e.cfg.Group, memberID, epoch, &s.member.id
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

// leave leaves the group, so that others take over at once. The client does
// that by itself for a dynamic member only: a static one is expected to return.
// Under the consumer protocol the client says so in a request that lacks the
// instance id (franz-go 1.22), which brokers refuse; what counts is our own.
//
// And the client waits for a join that is under way, which may take as long as
// the slowest member's drain: then we leave without it, which answers the join.
func (s *groupSource) leave(ctx context.Context) error {
	memberID, _ := s.client.GroupMetadata()
	inTime, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	err := s.client.LeaveGroupContext(inTime)
	if inTime.Err() != nil && s.member.id == "" && memberID != "" && s.e.cfg.Kafka.GroupProtocol == GroupProtocolClassic {
		return s.classicLeave(ctx, memberID)
	}
	joining := memberID == "" // and maybe a member already, who has not heard of it
	if s.member.id == "" || joining && s.e.cfg.Kafka.GroupProtocol == GroupProtocolConsumer || ctx.Err() != nil {
		return err
	}
	err = s.staticLeave(ctx, memberID)
	if errors.Is(err, kerr.UnknownMemberID) {
		return nil // gone already
	}
	return err
}

// leaveTimeout is how long the client has to leave by itself.
const leaveTimeout = closeTimeout / 3

func (s *groupSource) staticLeave(ctx context.Context, memberID string) error {
	if s.e.cfg.Kafka.GroupProtocol == GroupProtocolConsumer {
		return s.consumerLeave(ctx, s.client, memberID, leavesForGood)
	}
	return s.classicLeave(ctx, memberID)
}

func (s *groupSource) classicLeave(ctx context.Context, memberID string) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = s.e.cfg.Group, memberID
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID = memberID
	if s.member.id != "" {
		member.InstanceID = &s.member.id
	}
	req.Members = append(req.Members, member)
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return err
	}
	for _, m := range resp.Members {
		err = errors.Join(err, kerr.ErrorForCode(m.ErrorCode))
	}
	return errors.Join(err, kerr.ErrorForCode(resp.ErrorCode))
}
