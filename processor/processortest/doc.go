// Package processortest is what tests of a pipeline stand on: a Kafka cluster
// in the process ([Kafka]), a real broker ([Broker], [SharedBroker]), worker
// processes that can be killed and stopped ([StartWorker]), and connections to
// PostgreSQL that fail exactly at COMMIT ([CommitFault]). [Simulate] puts a
// pipeline through all of it. Nothing here is a mock: each piece is the real thing, or speaks its protocol, and the faults
// are injected from outside.
//
// [Cluster] and [RealBroker] share the helpers of [Client]: topics, records,
// transactions, offsets. Each helper fails its test at once when the broker
// refuses, so that a test reads as a list of steps.
//
// # Which broker a test gets
//
// [Kafka] needs nothing and starts in milliseconds; most tests want it. A real
// broker costs some seconds and is looked for in this order:
//
//  1. the addresses in ONCESTREAM_TEST_KAFKA_BROKERS, separated by commas.
//     Such a broker is not ours: it cannot be killed, stopped or restarted;
//  2. a container of [KafkaImage], where a Docker engine answers;
//  3. the jars of the same version, fetched once by Maven into the user's
//     cache folder, where Java 17 and Maven are found.
//
// A broker from 3 dies with the test binary, even when that is killed; one from
// 2 too, by the reaper of testcontainers, unless that is switched off.
//
// The broker, the workers and their signals need a Unix system; the rest works
// everywhere.
package processortest
