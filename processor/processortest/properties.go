//go:build unix

package processortest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// smallAndQuick are the server properties that make a broker fit for tests.
func smallAndQuick() map[string]string {
	return map[string]string{
		// A test that misspells a topic must fail, not wait on an empty one.
		"auto.create.topics.enable": "false",

		// One node.
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",

		// Little to create, hold and recover.
		"offsets.topic.num.partitions":                 "2",
		"transaction.state.log.num.partitions":         "2",
		"share.coordinator.state.topic.num.partitions": "2",
		"num.network.threads":                          "2",
		"num.io.threads":                               "4",
		"log.cleaner.dedupe.buffer.size":               "4194304",

		// A killed broker is let in again when its old session has ended.
		"broker.session.timeout.ms":    "2000",
		"broker.heartbeat.interval.ms": "500",

		// Groups: no wait for more members, and a dead member is found soon.
		"group.initial.rebalance.delay.ms":         "0",
		"group.min.session.timeout.ms":             "1000",
		"group.consumer.min.session.timeout.ms":    "1000",
		"group.consumer.session.timeout.ms":        "6000",
		"group.consumer.min.heartbeat.interval.ms": "500",
		"group.consumer.heartbeat.interval.ms":     "500",

		// Retention, compaction and abandoned transactions take effect within a
		// test's patience.
		"log.initial.task.delay.ms":                                   "500",
		"log.retention.check.interval.ms":                             "500",
		"log.segment.delete.delay.ms":                                 "500",
		"log.cleaner.backoff.ms":                                      "200",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
	}
}

// freePort finds a port that nobody listens on and that is not taken. It looks below the range from
// which systems number outgoing connections: a broker that is down for a while
// must find its port free when it comes back.
func freePort(taken map[int]bool) (int, error) {
	for range 100 {
		port := 20000 + rand.IntN(10000)
		if taken[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port among a hundred tried between 20000 and 30000")
}
