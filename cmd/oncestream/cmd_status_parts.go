package main

import (
	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// status is how far a group is.
type status struct {
	Group      string            `json:"group"`
	Topic      string            `json:"topic"`
	Partitions []partitionStatus `json:"partitions"`
	Total      partitionStatus   `json:"total"`
	// Oldest is what holds back the vacuum of the database, null where that is
	// nothing, or younger than watch.transaction.
	Oldest *transactionStatus `json:"oldest_transaction,omitempty"`

	// transaction is the oldest whatever its age; nil where the database does not
	// tell.
	transaction *offsets.Transaction
}

// partitionStatus is how far one partition is. Next is null where the group has
// not begun it, Drift where Kafka has no offset of it or was not asked.
type partitionStatus struct {
	Partition            int32           `json:"partition"`
	Owner                string          `json:"owner,omitempty"`
	Epoch                int64           `json:"epoch,omitempty"`
	Next                 *int64          `json:"next,omitempty"`
	End                  int64           `json:"end"`
	Lag                  int64           `json:"lag"`
	Processed            int64           `json:"processed"`
	DuplicatesProducer   int64           `json:"duplicates_producer"`
	DuplicatesRedelivery int64           `json:"duplicates_redelivery"`
	DeadLetters          int64           `json:"dead_letters"`
	OpenDeadLetters      int64           `json:"open_dead_letters"`
	Skipped              int64           `json:"skipped,omitempty"`
	State                string          `json:"state"`
	Reason               string          `json:"reason,omitempty"`
	Drift                *int64          `json:"drift,omitempty"`
	Retention            *forecastStatus `json:"retention,omitempty"`

	forecast *processor.Forecast // what Retention says; nil where nobody looked
}

// forecastStatus is a forecast in JSON. RemainingSeconds is there where the
// outlook is "due".
type forecastStatus struct {
	Outlook          processor.Outlook `json:"outlook"`
	RemainingSeconds *float64          `json:"remaining_seconds,omitempty"`
	Lost             int64             `json:"lost,omitempty"`
	Why              string            `json:"why,omitempty"`
}

// transactionStatus is a transaction in JSON.
type transactionStatus struct {
	Kind        string  `json:"kind"`
	PID         int32   `json:"pid,omitempty"`
	Name        string  `json:"name,omitempty"`
	User        string  `json:"user,omitempty"`
	Application string  `json:"application,omitempty"`
	State       string  `json:"state,omitempty"`
	AgeSeconds  float64 `json:"age_seconds"`
	DeadRows    int64   `json:"dead_position_rows"`

	text string
}

func (s *status) fill(topic processor.Topic, progress []offsets.Progress) {
	byPartition := map[int32]offsets.Progress{}
	for _, p := range progress {
		byPartition[p.Partition] = p
	}
	for _, r := range topic.Partitions {
		p := partitionStatus{Partition: r.Partition, End: r.End, State: "not begun", Lag: max(0, r.Stable-r.Start)}
		if known, ok := byPartition[r.Partition]; ok {
			p.take(known, r)
		}
		s.Partitions = append(s.Partitions, p)
		s.Total.add(p)
	}
}

// take takes the ledger's account. The lag is what can be read: what retention
// has removed is lost, and no lag (case B12).
func (p *partitionStatus) take(known offsets.Progress, r processor.PartitionRange) {
	p.Owner, p.Epoch, p.Next = known.Owner, known.Epoch, &known.Next
	p.Lag = max(0, r.Stable-max(known.Next, r.Start))
	p.Processed, p.DeadLetters, p.OpenDeadLetters, p.Skipped = known.Records, known.DeadLetters, known.OpenDeadLetters, known.Skipped
	p.DuplicatesProducer, p.DuplicatesRedelivery = known.DuplicatesProducer, known.DuplicatesRedelivery
	p.State, p.Reason = known.State, known.Reason
}

// add adds a partition to the total.
func (p *partitionStatus) add(o partitionStatus) {
	p.Partition++
	p.Lag += o.Lag
	p.Processed += o.Processed
	p.DuplicatesProducer += o.DuplicatesProducer
	p.DuplicatesRedelivery += o.DuplicatesRedelivery
	p.DeadLetters += o.DeadLetters
	p.OpenDeadLetters += o.OpenDeadLetters
	p.Skipped += o.Skipped
	if p.State != stateHalted {
		p.State = o.State
	}
}
