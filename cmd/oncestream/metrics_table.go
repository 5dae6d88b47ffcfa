package main

import (
	"fmt"
	"strings"
)

// metricDoc describes a metric. The metrics themselves and the table in the
// README come out of these descriptions.
type metricDoc struct {
	name, kind, help string
	labels           []string // besides group and topic, which all have
}

// The kinds of metrics.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// metricPrefix begins the name of each.
const metricPrefix = "oncestream_"

// metricDocs describes all metrics, without the prefix.
func metricDocs() []metricDoc {
	byPartition := []string{"partition"}
	return []metricDoc{
		{"records_total", counter, "Records that have passed, in committed batches.", nil},
		{"effects_total", counter, "Messages whose key was new and that had their effect.", nil},
		{"duplicates_total", counter, "Messages whose key had had its effect; the cause is `producer` or `redelivery`.", []string{"cause"}},
		{"dead_letters_total", counter, "Records that were set aside, by reason.", []string{"reason"}},
		{"batches_total", counter, "Batch transactions; the outcome is `committed` or `rolled_back`.", []string{"outcome"}},
		{"batches_contested_total", counter, "Committed batches of which another partition wrote a key at the same moment, and so were done `twice`; or that were `inserted` from the start, the slower way, since that was frequent.", []string{"done"}},
		{"transaction_seconds", histogram, "How long a committed batch transaction took.", nil},
		{"retries_total", counter, "Failures that were tried again, by what was tried.", []string{"what"}},
		{"fenced_total", counter, "Claims that another process took while this one worked under them.", nil},
		{"went_back_total", counter, "Claims of which the database knew less than this process, after a restore or a failover. What it has lost is redone.", nil},
		{"commits_unknown_total", counter, "Batches whose COMMIT had no answer.", nil},
		{"commits_resolved_total", counter, "Those of which the next claim has shown the outcome, `committed` or `aborted`.", []string{"outcome"}},
		{"records_dropped_total", counter, "Records that Kafka delivered again and that lie before the claim.", nil},
		{"keys_purged_total", counter, "Idempotency keys that were forgotten by their age.", nil},
		{"looks_failed_total", counter, "Times that the brokers or the database did not tell what the gauges show.", nil},

		{"partition_claimed", gauge, "1 for each partition that this process holds. It has no series for another, so over the fleet there is one a partition.", byPartition},
		{"partition_halted", gauge, "1 where the partition is halted, with the code of the reason.", []string{"partition", "code"}},
		{"partition_stuck_seconds", gauge, "For how long a partition that is assigned here has been claimed, or at one batch, once that is longer than `stuck_after`; else 0.", byPartition},
		{"partition_paused", gauge, "1 where the partition's queue is full and its fetches are paused.", byPartition},
		{"next_offset", gauge, "The stored offset: the next to handle.", byPartition},
		{"lag_offsets", gauge, "Offsets from the stored one to the last stable one.", byPartition},
		{"kafka_drift_offsets", gauge, "Kafka's own offset less the stored one. It runs a little behind; above 0 the database went back, or somebody moved the group.", byPartition},
		{"retention_remaining_seconds", gauge, "Time until retention removes the record at the stored offset; `+Inf` where none is removed or nothing is unread.", byPartition},
		{"lost_offsets", gauge, "Offsets that retention has removed before they were read.", byPartition},
		{"open_dead_letters", gauge, "Dead letters that are neither replayed nor discarded.", byPartition},
		{"oldest_transaction_seconds", gauge, "Age of the transaction, anywhere in the database, that keeps a vacuum from its dead rows; 0 where there is none. Every process shows it: take the maximum.", nil},
	}
}

// metricsMarkdown writes the table of the metrics.
func metricsMarkdown() string {
	var b strings.Builder
	b.WriteString("| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range metricDocs() {
		labels := "none"
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s |\n", metricPrefix, m.name, m.kind, labels, m.help)
	}
	return b.String()
}
