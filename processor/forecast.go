package processor

import (
	"fmt"
	"time"
)

// Forecast says when retention reaches the stored offset of a partition: the
// first record that is still to be handled is removed then.
//
// A broker removes whole segments, some minutes after they have become old or
// superfluous, so a record lives at least as long as the forecast says. It rests
// on these assumptions:
//
//   - By time (retention.ms): a record leaves when it is older than that by its
//     own timestamp, which is what the broker goes by. The caller's clock says
//     what time it is; it should be the database's, and be near the broker's.
//   - By size (retention.bytes): records arrive as fast as they have arrived since
//     the log's first record. A log that is full then loses its head at that rate:
//     the record at the stored offset is at the head after the time that lies
//     between the two records. A log that has room yet fills it first. Where the
//     brokers do not tell the size, the log is taken for full.
type Forecast struct {
	Partition int32
	Outlook   Outlook
	// Remaining is the time left where the outlook is OutlookDue, 0 where
	// retention may remove the record at any moment.
	Remaining time.Duration
	// Retention is the topic's retention.ms, 0 where it has none.
	Retention time.Duration
	// Lost is how many offsets were removed unread, where the outlook is
	// OutlookLost.
	Lost int64
	// Why says what could not be learned, where the outlook is OutlookUnknown.
	Why string
}

// Outlook is the kind of a forecast.
type Outlook string

// The outlooks.
const (
	// OutlookNone: there is nothing unread that could be lost.
	OutlookNone Outlook = "none"
	// OutlookNever: the topic removes nothing.
	OutlookNever Outlook = "never"
	// OutlookCompacted: the topic removes nothing by age or size; of a record key
	// it may keep the last record only.
	OutlookCompacted Outlook = "never, compacted"
	// OutlookDue: the record is removed after Remaining, at the earliest.
	OutlookDue Outlook = "due"
	// OutlookLost: the stored offset lies below the log.
	OutlookLost Outlook = "lost"
	// OutlookUnknown: the brokers did not tell what is needed.
	OutlookUnknown Outlook = "unknown"
)

// String writes the forecast in a few words: the outlook, the time that remains
// or how much is lost.
func (f Forecast) String() string {
	switch f.Outlook {
	case OutlookDue:
		return roundly(f.Remaining)
	case OutlookLost:
		return fmt.Sprintf("lost %d", f.Lost)
	case OutlookNone, OutlookNever, OutlookCompacted, OutlookUnknown:
	}
	return string(f.Outlook)
}

// roundly writes a duration with its two largest units at most.
func roundly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return d.Truncate(time.Second).String()
}

// Near reports whether the record is lost already or is removed within the
// limit. A limit of 0 is a tenth of the topic's retention, but an hour at least,
// and half of the retention at most.
func (f Forecast) Near(limit time.Duration) bool {
	if limit == 0 {
		limit = max(time.Hour, f.Retention/10)
		if f.Retention > 0 {
			limit = min(limit, f.Retention/2)
		}
	}
	return f.Outlook == OutlookLost || f.Outlook == OutlookDue && f.Remaining < limit
}

// retention is what a topic's configuration says of removing records. A bound
// below 0 is none.
type retention struct {
	byTime            time.Duration
	byBytes           int64
	deletes, compacts bool
}

// limited reports whether records are removed by age or size at all.
func (r retention) limited() bool { return r.deletes && (r.byTime >= 0 || r.byBytes >= 0) }

// standing is where a group stands in the log of a partition.
type standing struct {
	next int64
	log  PartitionRange
	// at and first are the times of the record at the next offset and of the first
	// of the log, zero where they are not known.
	at, first time.Time
	size      int64 // of the log in bytes, below 0 where it is not known
}

// reading reports whether there are records to read that may be removed.
func (s standing) reading() bool { return s.next >= s.log.Start && s.next < s.log.End }

// forecast is the forecast of one partition. Its Partition is that of the log.
func (r retention) forecast(s standing, now time.Time) Forecast {
	f := Forecast{Partition: s.log.Partition, Retention: max(0, r.byTime)}
	switch {
	case s.next < s.log.Start:
		f.Outlook, f.Lost = OutlookLost, s.log.Start-s.next
	case !s.reading():
		f.Outlook = OutlookNone
	case !r.deletes && r.compacts:
		f.Outlook = OutlookCompacted
	case !r.limited():
		f.Outlook = OutlookNever
	case s.at.IsZero():
		f.Outlook, f.Why = OutlookUnknown, "the record at the stored offset could not be read, or has no time"
	default:
		f.Outlook, f.Remaining = OutlookDue, max(0, r.remaining(s, now))
	}
	return f
}

// remaining is the shorter of what time and size leave.
func (r retention) remaining(s standing, now time.Time) time.Duration {
	left := time.Duration(1<<63 - 1)
	if r.byTime >= 0 {
		left = r.byTime - now.Sub(s.at)
	}
	if r.byBytes >= 0 && !s.first.IsZero() {
		left = min(left, s.at.Sub(s.first)+r.filling(s, now))
	}
	return left
}

// filling is how long it takes until the log is full.
func (r retention) filling(s standing, now time.Time) time.Duration {
	if s.size <= 0 || s.size >= r.byBytes {
		return 0
	}
	full := float64(r.byBytes-s.size) / float64(s.size)
	return time.Duration(min(full*float64(max(0, now.Sub(s.first))), float64(farAway)))
}

// farAway keeps a sum of two durations from running over.
const farAway = 100 * 365 * 24 * time.Hour
