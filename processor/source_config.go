package processor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Kafka says which topic is read and how.
type Kafka struct {
	// Brokers are the seed addresses, host:port. Required.
	Brokers []string
	// Topic is the topic's name. Required.
	Topic string
	// Start is where a group that the ledger does not know begins. There is no
	// default: a wrong guess either skips records or repeats years of them.
	// It is not looked at once a position is stored. Required.
	Start Start
	// RequireTopic makes a missing topic an error at the start. The default is
	// to warn, name similar topics, and wait for it to be created.
	RequireTopic bool
	// ReadUncommitted also reads records of open and aborted transactions.
	// The default is read_committed.
	ReadUncommitted bool

	// GroupProtocol is how the group agrees on who reads what: "classic", or
	// "consumer" (KIP-848), where the brokers decide. The latter needs Kafka 4.0,
	// better 4.3, and moves partitions without a barrier for all members; but its
	// heartbeats and session timeouts are the brokers' settings, by default 5 and
	// 45 seconds, and so is the time until others take over.
	// Defaults to "classic".
	GroupProtocol string
	// Balancer is how the group shares the partitions: "cooperative-sticky",
	// or "range", "roundrobin" and "sticky" of the eager protocol. Under the
	// consumer protocol "range" is the brokers' range assignor and each other one
	// the uniform assignor, but "roundrobin" has no counterpart there.
	// Defaults to "cooperative-sticky".
	Balancer string
	// InstanceID makes this member a static one (KIP-345): it has its partitions
	// back at once when it is killed and started again. It must differ between the
	// processes of a group.
	//
	// "auto" chooses one: the host's name (in Kubernetes the pod's), what tells
	// this machine from others of that name, and a number that no other process of
	// the group has on this host, held by a lock on a file in the folder for
	// temporary files. Where nothing can be locked, or another member turns out to
	// have the id, the member is a dynamic one. "none" is a dynamic member.
	//
	// A graceful stop leaves the group whatever the id.
	// Defaults to "auto".
	InstanceID string
	// SessionTimeout is how long the group waits for a silent member, and twenty
	// times the interval of the heartbeats by which a member learns that partitions
	// move. The brokers take 6 seconds and more unless they are configured
	// otherwise. The consumer protocol does not look at it.
	// Defaults to 6 seconds.
	SessionTimeout time.Duration

	// TLS, if set, encrypts the connections to the brokers.
	TLS *tls.Config
	// RenewTLS, if set, is asked for the configuration of each new connection, in
	// place of TLS, so that a certificate which was renewed is used without a
	// restart. An error fails the connection, which is tried again.
	RenewTLS func() (*tls.Config, error)
	// SASL, if its mechanism is set, signs in to the brokers.
	SASL SASL
	// Options are further options of the franz-go client, applied last. They
	// are for dialers, hooks and tests; an option that contradicts the engine
	// (commits, offsets, callbacks of the group) breaks it.
	Options []kgo.Opt
}

// SASL is how to sign in to the brokers.
type SASL struct {
	// Mechanism is "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512".
	Mechanism      string
	User, Password string
}

// Start is where a group begins that has no stored position.
type Start struct {
	// At is "earliest", "latest" or "time".
	At string
	// Time is the earliest record time to read, where At is "time".
	Time time.Time
}

// What Kafka.InstanceID may be besides an id.
const (
	InstanceAuto = "auto"
	InstanceNone = "none"
)

// The values of Kafka.GroupProtocol.
const (
	GroupProtocolClassic  = "classic"
	GroupProtocolConsumer = "consumer"
)

// ParseStart reads "earliest", "latest" or an RFC 3339 time.
func ParseStart(s string) (Start, error) {
	switch s {
	case "earliest", "latest":
		return Start{At: s}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return Start{}, fmt.Errorf("start: must be earliest, latest or an RFC 3339 time such as 2026-01-31T08:00:00Z (got %q)", s)
	}
	return Start{At: "time", Time: t}, nil
}

// clientOptions are what every client of this configuration needs.
func (k Kafka) clientOptions() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(k.Brokers...),
		kgo.ClientID("oncestream"),
		kgo.FetchMaxWait(500 * time.Millisecond), // a resumed partition waits for the fetch in flight
		kgo.FetchMaxBytes(4 << 20),               // what is fetched ahead is memory of each partition
		kgo.FetchMaxPartitionBytes(512 << 10),
		kgo.DialTimeout(dialTimeout),
	}
	opts = append(opts, k.encryption()...)
	switch k.SASL.Mechanism {
	case "PLAIN":
		opts = append(opts, kgo.SASL(plain.Auth{User: k.SASL.User, Pass: k.SASL.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		opts = append(opts, kgo.SASL(scram.Auth{User: k.SASL.User, Pass: k.SASL.Password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		opts = append(opts, kgo.SASL(scram.Auth{User: k.SASL.User, Pass: k.SASL.Password}.AsSha512Mechanism()))
	}
	return opts
}

const (
	dialTimeout = 5 * time.Second
	// rebalanceReserve is what a member may take to join again besides its drain.
	rebalanceReserve = 30 * time.Second
)

var balancers = []string{"cooperative-sticky", "range", "roundrobin", "sticky"}

var groupProtocols = []string{GroupProtocolClassic, GroupProtocolConsumer}

var mechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}

func (k Kafka) withDefaults() (Kafka, error) {
	var errs []error
	require := func(ok bool, path, rule string, got any) {
		if !ok {
			errs = append(errs, fmt.Errorf("config: kafka.%s: %s (got %v)", path, rule, got))
		}
	}
	require(len(k.Brokers) > 0, "brokers", "at least one address host:port is required", "none")
	require(k.Topic != "", "topic", "the topic's name is required", "nothing")
	require(slices.Contains([]string{"earliest", "latest", "time"}, k.Start.At), "start",
		"must be earliest, latest or a time: the first start needs an explicit choice", fmt.Sprintf("%q", k.Start.At))
	require(k.Balancer == "" || slices.Contains(balancers, k.Balancer), "balancer", "must be one of "+strings.Join(balancers, ", "), k.Balancer)
	require(k.GroupProtocol == "" || slices.Contains(groupProtocols, k.GroupProtocol), "group_protocol", "must be one of "+strings.Join(groupProtocols, ", "), k.GroupProtocol)
	require(k.GroupProtocol != GroupProtocolConsumer || k.Balancer != "roundrobin", "balancer", "the consumer protocol knows range and sticky only", k.Balancer)
	require(k.SASL.Mechanism == "" || slices.Contains(mechanisms, k.SASL.Mechanism), "sasl.mechanism", "must be one of "+strings.Join(mechanisms, ", "), k.SASL.Mechanism)
	require(k.SASL.Mechanism == "" || k.SASL.User != "", "sasl.user", "a user is required", "nothing")
	require(k.SessionTimeout >= 0, "session_timeout", "must not be negative", k.SessionTimeout)
	fill(&k.Balancer, "cooperative-sticky")
	fill(&k.GroupProtocol, GroupProtocolClassic)
	fill(&k.InstanceID, InstanceAuto)
	fill(&k.SessionTimeout, 6*time.Second)
	return k, errors.Join(errs...)
}
