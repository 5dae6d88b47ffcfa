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

	// Balancer is how the group shares the partitions: "cooperative-sticky",
	// or "range", "roundrobin" and "sticky" of the eager protocol.
	// Defaults to "cooperative-sticky".
	Balancer string
	// InstanceID, if set, makes this member a static one (KIP-345): a restart
	// within the session timeout keeps its partitions. It must differ between
	// the processes of a group. Defaults to none.
	InstanceID string
	// SessionTimeout is how long the group waits for a silent member.
	// Defaults to 10 seconds.
	SessionTimeout time.Duration

	// TLS, if set, encrypts the connections to the brokers.
	TLS *tls.Config
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
	if k.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(k.TLS))
	}
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

const dialTimeout = 5 * time.Second

var balancers = []string{"cooperative-sticky", "range", "roundrobin", "sticky"}

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
	require(k.SASL.Mechanism == "" || slices.Contains(mechanisms, k.SASL.Mechanism), "sasl.mechanism", "must be one of "+strings.Join(mechanisms, ", "), k.SASL.Mechanism)
	require(k.SASL.Mechanism == "" || k.SASL.User != "", "sasl.user", "a user is required", "nothing")
	require(k.SessionTimeout >= 0, "session_timeout", "must not be negative", k.SessionTimeout)
	fill(&k.Balancer, "cooperative-sticky")
	fill(&k.SessionTimeout, 10*time.Second)
	return k, errors.Join(errs...)
}
