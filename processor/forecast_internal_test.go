package processor

import (
	"testing"
	"time"
)

// The forecast of every kind of topic and every place in its log: what is taken
// from the times of two records, the size of the log and the topic's bounds.
func TestForecastOfAStanding(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	log := PartitionRange{Partition: 3, Start: 100, Stable: 900, End: 1000}
	aged := func(at, first time.Duration) standing {
		return standing{next: 500, log: log, at: now.Add(-at), first: now.Add(-first), size: 1000}
	}
	week := retention{byTime: 7 * day, byBytes: -1, deletes: true}
	full := retention{byTime: -1, byBytes: 1000, deletes: true}
	for name, tt := range map[string]struct {
		r    retention
		s    standing
		want string
	}{
		"by time":                        {week, aged(6*day, 7*day), "1d0h"},
		"by time, overdue":               {week, aged(8*day, 9*day), "0s"},
		"a record from the future":       {week, aged(-day, 7*day), "8d0h"},
		"by size, full":                  {full, aged(2*day, 5*day), "3d0h"},
		"by size, twice full":            {full, standing{next: 500, log: log, at: now.Add(-2 * day), first: now.Add(-5 * day), size: 2000}, "3d0h"},
		"by size, half full":             {full, standing{next: 500, log: log, at: now.Add(-2 * day), first: now.Add(-5 * day), size: 500}, "8d0h"},
		"by size, size unknown":          {full, standing{next: 500, log: log, at: now.Add(-2 * day), first: now.Add(-5 * day), size: -1}, "3d0h"},
		"by both, size is sooner":        {retention{byTime: 7 * day, byBytes: 1000, deletes: true}, aged(2*day, 3*day), "1d0h"},
		"by both, time is sooner":        {retention{byTime: 7 * day, byBytes: 1000, deletes: true}, aged(6*day+12*time.Hour, 20*day), "12h0m"},
		"for ever":                       {retention{byTime: -1, byBytes: -1, deletes: true}, aged(day, day), "never"},
		"compacted":                      {retention{byTime: 7 * day, byBytes: -1, compacts: true}, aged(day, day), "never, compacted"},
		"compacted and deleted":          {retention{byTime: 7 * day, byBytes: -1, compacts: true, deletes: true}, aged(6*day, 7*day), "1d0h"},
		"at the end":                     {week, standing{next: 1000, log: log}, "none"},
		"beyond the end":                 {week, standing{next: 1001, log: log}, "none"},
		"before the end, nothing stable": {week, standing{next: 950, log: log, at: now}, "7d0h"},
		"passed":                         {week, standing{next: 40, log: log}, "lost 60"},
		"passed, compacted":              {retention{compacts: true}, standing{next: 99, log: log}, "lost 1"},
		"without a time":                 {week, standing{next: 500, log: log}, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tt.r.forecast(tt.s, now)
			if got.String() != tt.want || got.Partition != 3 {
				t.Errorf("%v of partition %d, want %s of 3", got, got.Partition, tt.want)
			}
		})
	}
}

// What is near by default follows the topic's retention: a tenth of it, an hour
// at least, and never more than half of it.
func TestForecastNear(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for _, tt := range []struct {
		retention, remaining, limit time.Duration
		want                        bool
	}{
		{week, week/10 - time.Second, 0, true},
		{week, week / 10, 0, false},
		{4 * time.Hour, 59 * time.Minute, 0, true},
		{4 * time.Hour, time.Hour, 0, false},
		{time.Minute, 29 * time.Second, 0, true},
		{time.Minute, 30 * time.Second, 0, false},
		{0, 59 * time.Minute, 0, true},
		{week, time.Hour, 2 * time.Hour, true},
		{week, 3 * time.Hour, 2 * time.Hour, false},
	} {
		f := Forecast{Outlook: OutlookDue, Remaining: tt.remaining, Retention: tt.retention}
		if got := f.Near(tt.limit); got != tt.want {
			t.Errorf("%v of %v, limit %v: near is %t", tt.remaining, tt.retention, tt.limit, got)
		}
	}
	if !(Forecast{Outlook: OutlookLost, Lost: 1}).Near(0) || (Forecast{Outlook: OutlookNever}).Near(0) {
		t.Error("what is lost is near, what is never removed is not")
	}
}
