package schema

import (
	"fmt"
	"time"
)

// Record is what the broker delivered: bytes and a position. A Record is
// read-only: its slices share memory with the fetch they came in, and several
// messages may look at the same bytes.
type Record struct {
	// Topic is the topic's name and TopicID the identity that tells a topic
	// from one that was deleted and created again under the same name (KIP-516).
	// TopicID is zero where the broker does not report one.
	Topic   string
	TopicID [16]byte
	// ClusterID is the broker's cluster id, empty where it reports none.
	ClusterID string
	Partition int32
	// Offset is the record's place in its partition, counted from 0.
	Offset int64
	// LeaderEpoch is the epoch of the leader that wrote the record, -1 where
	// unknown (KIP-320).
	LeaderEpoch int32
	// Time is the record's timestamp in milliseconds of the producer's or the
	// broker's clock, as the topic is configured.
	Time time.Time
	// Key is the record key, nil where the producer gave none. It is not the
	// idempotency key; see [Key].
	Key []byte
	// Value is the payload; nil is a tombstone, which differs from an empty
	// payload.
	Value   []byte
	Headers []Header
}

// Header is one header of a record. Keys may repeat and their order counts.
// Value is nil where the producer sent none.
type Header struct {
	Key   string
	Value []byte
}

// Header returns the value of the last header named key, the one that a
// producer's interceptors added latest, and whether there is one.
func (r *Record) Header(key string) ([]byte, bool) {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if r.Headers[i].Key == key {
			return r.Headers[i].Value, true
		}
	}
	return nil, false
}

// Tombstone reports whether the record has no value at all, which on a
// compacted topic says that its record key was deleted.
func (r *Record) Tombstone() bool { return r.Value == nil }

// Position returns "topic/partition@offset", the form in which every error
// and log line names a record.
func (r *Record) Position() string {
	return fmt.Sprintf("%s/%d@%d", r.Topic, r.Partition, r.Offset)
}
