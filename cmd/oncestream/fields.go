package main

import (
	"github.com/oncestream/oncestream/processor"
)

// field describes one field of the pipeline file. Validation, the overrides by
// flags and environment, and the reference in the README all come out of these
// descriptions.
type field struct {
	path string // from the place that the description is of, "kafka.brokers"
	doc  string
	// def is the default as it would be written in the file; the reader sets
	// it where the field is left out. noDefault says in words what happens
	// without the field where no value stands for that.
	def, noDefault string
	required       bool
	choices        []string
	// flag and env override the field, the flag first.
	flag, env string
	// secret keeps the value out of messages.
	secret bool
	// value points to where the value goes; its type is the field's type.
	value any
}

// size is a number of bytes, written as a number with B, KiB, MiB or GiB.
type size int

// share is a part of the whole, above 0 and not above 1.
type share float64

// fileFields describes the pipeline file and says where in c its fields go.
func fileFields(c *config) []field {
	e := &c.engine
	fields := []field{
		{
			path: "name", value: &c.name, required: true,
			doc: "The consumer group, and the name under which the ledger keeps the position.",
		},
		{
			path: "handler", value: &c.handler, noDefault: "the name",
			doc: "The name under which keys are remembered: a key has one effect per handler. Two pipelines that must not both act on an event share it.",
		},
	}
	fields = append(fields, guardField(c), environmentField(e))
	fields = append(fields, kafkaFields(&e.Kafka, c.tls)...)
	fields = append(fields, postgresFields(&e.Postgres)...)
	fields = append(fields, engineFields(e)...)
	fields = append(fields, messageFields(c)...)
	fields = append(fields, policyFields(c)...)
	fields = append(fields, keysFields(&e.Keys)...)
	fields = append(fields, httpFields(e, &c.http, &c.watch)...)
	return append(fields, field{
		path: "sinks", value: &c.sinks, required: true,
		doc: "What is written for a message whose key is new: a list of sinks, run in this order in one transaction.",
	})
}

func kafkaFields(k *processor.Kafka, t *tlsFiles) []field {
	if t == nil {
		t = &tlsFiles{}
	}
	return []field{
		{
			path: "kafka.brokers", value: &k.Brokers, required: true, flag: "brokers", env: "KAFKA_BROKERS",
			doc: "The addresses (`host:port`) of one or more brokers.",
		},
		{
			path: "kafka.topic", value: &k.Topic, required: true, flag: "topic", env: "ONCESTREAM_TOPIC",
			doc: "The topic. A group reads one topic.",
		},
		{
			path: "kafka.start", value: &k.Start, required: true, flag: "start", env: "ONCESTREAM_START",
			doc: "Where a group begins that the ledger does not know: `earliest`, `latest`, or a time such as `2026-01-31T08:00:00Z`. Without effect once a position is stored.",
		},
		{
			path: "kafka.require_topic", value: &k.RequireTopic, def: "false",
			doc: "Whether a missing topic is an error. Otherwise it is waited for.",
		},
		{
			path: "kafka.read_uncommitted", value: &k.ReadUncommitted, def: "false",
			doc: "Whether records of open and aborted Kafka transactions are read too.",
		},
		{
			path: "kafka.group_protocol", value: &k.GroupProtocol, def: "classic", choices: []string{"classic", "consumer"},
			doc: "How the group agrees on who reads what. `consumer` (KIP-848) leaves that to the brokers, which must be Kafka 4.0 or later, better 4.3. " +
				"Their settings then say how soon others take over: heartbeats (`group.consumer.heartbeat.interval.ms`, 5 s) and session timeout (`group.consumer.session.timeout.ms`, 45 s).",
		},
		{
			path: "kafka.balancer", value: &k.Balancer, def: "cooperative-sticky",
			choices: []string{"cooperative-sticky", "range", "roundrobin", "sticky"},
			doc:     "How the group shares its partitions. All members must have the same. With `consumer`, `range` is the brokers' range assignor, the sticky ones are the uniform assignor.",
		},
		{
			path: "kafka.instance_id", value: &k.InstanceID, def: "auto", flag: "instance-id", env: "ONCESTREAM_INSTANCE_ID",
			doc: "Makes this process a static member (KIP-345), which has its partitions back at once when it is killed and started again. " +
				"`auto`: the name of the host or pod and a number of its own, held by a lock in the folder for temporary files; `none`: a dynamic member; anything else must differ between the processes of a group.",
		},
		{
			path: "kafka.session_timeout", value: &k.SessionTimeout, def: "6s",
			doc: "How long the group waits for a silent member before its partitions move (`classic` only). Brokers accept 6 s and more unless configured otherwise.",
		},
		{
			path: "kafka.tls.ca", value: &t.ca, noDefault: "the system's",
			doc: "The file with the authorities that sign the brokers' certificates. `tls: {}` encrypts with all defaults; without `tls` nothing is encrypted.",
		},
		{path: "kafka.tls.cert", value: &t.cert, noDefault: "none", doc: "The file with this client's certificate, where the brokers ask for one. These files are read again for each new connection: one that is renewed needs no restart."},
		{path: "kafka.tls.key", value: &t.key, noDefault: "none", doc: "The file with the key of that certificate."},
		{path: "kafka.tls.server_name", value: &t.serverName, noDefault: "the broker's host", doc: "The name that the brokers' certificates are checked against."},
		{
			path: "kafka.sasl.mechanism", value: &k.SASL.Mechanism, noDefault: "no sign-in", choices: []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"},
			doc: "How to sign in to the brokers.",
		},
		{path: "kafka.sasl.user", value: &k.SASL.User, noDefault: "none", env: "ONCESTREAM_KAFKA_USER", doc: "The user."},
		{path: "kafka.sasl.password", value: &k.SASL.Password, noDefault: "none", env: "ONCESTREAM_KAFKA_PASSWORD", secret: true, doc: "The password."},
	}
}

func postgresFields(p *processor.Postgres) []field {
	return []field{
		{
			path: "postgres.url", value: &p.URL, required: true, secret: true, flag: "database-url", env: "DATABASE_URL",
			doc: "The database of the effects and the ledger, as a URI or as `keyword=value` pairs. The tables of the sinks are found by its `search_path`. " +
				"With a primary and its standbys name all hosts and add `target_session_attrs=read-write`: a failover is then followed by itself. " +
				"Behind PgBouncer in transaction mode it needs `default_query_exec_mode=cache_describe`, unless `max_prepared_statements` is set there, " +
				"and `connect_query` must set `search_path`, `idle_in_transaction_session_timeout`, `statement_timeout` and `lock_timeout`; `oncestream migrate up` must reach the server itself.",
		},
		{
			path: "postgres.schema", value: &p.Schema, def: "oncestream", flag: "schema", env: "ONCESTREAM_SCHEMA",
			doc: "The schema of the ledger's tables.",
		},
		{
			path: "postgres.concurrency", value: &p.Concurrency, def: "4", env: "ONCESTREAM_CONCURRENCY",
			doc: "How many batch transactions run at once in this process. It uses two connections more.",
		},
		{path: "postgres.transaction_timeout", value: &p.TransactionTimeout, def: "60s", doc: "How long one batch transaction may take."},
		{
			path: "postgres.idle_timeout", value: &p.IdleTimeout, def: "10s",
			doc: "After how long the server ends the transaction of a process that stopped in the middle of one (`idle_in_transaction_session_timeout`).",
		},
		{path: "postgres.lock_timeout", value: &p.LockTimeout, def: "2s", doc: "How long a claim waits for a partition's row before it looks who holds it and tries again."},
	}
}

func engineFields(e *processor.Config) []field {
	return []field{
		{path: "batch.max_records", value: &e.Batch.MaxRecords, def: "5000", doc: "The most records of one transaction."},
		{path: "batch.max_bytes", value: (*size)(&e.Batch.MaxBytes), def: "8MiB", doc: "The most bytes of keys and values of one transaction. A larger record is a batch of its own."},
		{path: "batch.max_wait", value: &e.Batch.MaxWait, def: "10ms", doc: "How long the first record of a batch waits for others."},
		{
			path: "drain_timeout", value: &e.DrainTimeout, def: "10s",
			doc: "How long a stop, or a partition that moves, waits for the transaction in flight. Nothing is lost or doubled when it runs out.",
		},
	}
}

func messageFields(c *config) []field {
	return append(decodeFields(&c.decode), []field{
		{
			path: "key.field", value: &c.key.field,
			doc: "The idempotency key is this field (`a.b` leads into objects, `\\.` is a dot in a name). A message without it is at fault, see `on_error`. One of `field`, `header`, `record_key`, `position` and `join` is required.",
		},
		{path: "key.header", value: &c.key.header, doc: "The key is the last header of this name."},
		{path: "key.record_key", value: &c.key.recordKey, def: "false", doc: "The key is the record key, which must then differ for each event."},
		{
			path: "key.position", value: &c.key.position, def: "false",
			doc: "The key is cluster, topic, partition and offset: it finds a redelivery, but not what a producer has sent twice.",
		},
		{path: "key.join", value: &c.key.join, doc: "The key is these fields together."},
		{
			path: "key.type", value: &c.key.kind, def: "text", choices: []string{"text", "uuid"},
			doc: "`uuid`: the key must be a UUID and is stored as it is; time-ordered ones keep the index small and quick. `text`: anything, stored as 128 bits of SHA-256.",
		},
	}...)
}
