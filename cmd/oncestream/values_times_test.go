package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/cockroachdb/apd/v3"
	"pgregory.net/rapid"
)

// The layouts in which PostgreSQL writes times.
const (
	pgDate      = time.DateOnly
	pgTime      = "15:04:05.999999"
	pgTimestamp = pgDate + " " + pgTime
)

func timeColumns() []valueColumn {
	const utc = "(%s at time zone 'UTC')::text"
	infinite := rapid.SampledFrom([]cell{{`"infinity"`, "infinity"}, {`"-infinity"`, "-infinity"}})
	epoch := func(exponent int32) *rapid.Generator[cell] {
		return rapid.Map(drawMoment(), func(at time.Time) cell {
			return cell{apd.New(at.UnixMicro(), exponent).Text('f'), at.Format(pgTimestamp)}
		})
	}
	return []valueColumn{
		{typ: "date", draw: rapid.OneOf(drawTime(pgDate, pgDate), infinite)},
		{typ: "time", draw: drawTime(pgTime, pgTime)},
		{typ: "timetz", draw: rapid.Map(drawZoned(), func(at time.Time) cell {
			want := pgTime + "-07"
			if _, offset := at.Zone(); offset%3600 != 0 {
				want += ":00"
			}
			return cell{strconv.Quote(at.Format(pgTime + "-07:00")), at.Format(want)}
		})},
		{typ: "timestamp", draw: rapid.OneOf(drawTime("2006-01-02T"+pgTime, pgTimestamp), drawTime("2006-01-02T"+pgTime+"Z", pgTimestamp), infinite)},
		{typ: "timestamptz", read: utc, draw: rapid.OneOf(rapid.Map(drawZoned(), func(at time.Time) cell {
			return cell{strconv.Quote(at.Format(time.RFC3339Nano)), at.UTC().Format(pgTimestamp)}
		}), infinite)},
		{typ: "timestamptz", as: "epoch_seconds", read: utc, draw: epoch(-6)},
		{typ: "timestamptz", as: "epoch_millis", read: utc, draw: epoch(-3)},
		{typ: "timestamptz", as: "epoch_micros", read: utc, draw: epoch(0)},
		{typ: "timestamp", as: "epoch_micros", draw: epoch(0)},
		{typ: "timestamptz", as: "epoch_nanos", read: utc, draw: rapid.Map(rapid.Int64Range(-9e15, 9e15), func(n int64) cell {
			return cell{fmt.Sprint(n * 1000), time.UnixMicro(n).UTC().Format(pgTimestamp)}
		})},
		{typ: "date", as: "epoch_days", draw: rapid.Map(rapid.Int64Range(-700_000, 2_900_000), func(n int64) cell {
			return cell{fmt.Sprint(n), time.Unix(n*86400, 0).UTC().Format(pgDate)}
		})},
		{typ: "time", as: "time_micros", draw: rapid.Map(rapid.Int64Range(0, 86_399_999_999), func(n int64) cell {
			return cell{fmt.Sprint(n), time.UnixMicro(n).UTC().Format(pgTime)}
		})},
		{typ: "time", as: "time_millis", draw: rapid.Map(rapid.Int64Range(0, 86_399_999), func(n int64) cell {
			return cell{fmt.Sprint(n), time.UnixMilli(n).UTC().Format(pgTime)}
		})},
		{typ: "timestamptz", as: "truncate", read: utc, draw: rapid.Map(drawMoment(), func(at time.Time) cell {
			return cell{strconv.Quote(at.Format("2006-01-02T15:04:05.000000") + "999Z"), at.Format(pgTimestamp)}
		})},
		{
			typ: "interval", draw: drawInterval(),
			read: `(extract(year from %s) * 12 + extract(month from %s) || ' ' || extract(day from %s) || ' ' ||
				(extract(hour from %s) * 3600000000 + extract(minute from %s) * 60000000 + extract(microseconds from %s))::bigint)`,
		},
	}
}

// drawMoment draws moments of the years 2 to 9998, which no zone leads out of
// those with four digits.
func drawMoment() *rapid.Generator[time.Time] {
	first, last := time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()-1
	return rapid.Map(rapid.Int64Range(first, last), func(n int64) time.Time { return time.UnixMicro(n).UTC() })
}

func drawTime(sent, want string) *rapid.Generator[cell] {
	return rapid.Map(drawMoment(), func(at time.Time) cell { return cell{strconv.Quote(at.Format(sent)), at.Format(want)} })
}

func drawZoned() *rapid.Generator[time.Time] {
	return rapid.Custom(func(rt *rapid.T) time.Time {
		minutes := rapid.IntRange(-14*60, 14*60).Draw(rt, "offset")
		return drawMoment().Draw(rt, "at").In(time.FixedZone("", minutes*60))
	})
}

// drawInterval draws intervals in the form of ISO 8601, as months, days and
// microseconds, which PostgreSQL keeps apart.
func drawInterval() *rapid.Generator[cell] {
	return rapid.Custom(func(rt *rapid.T) cell {
		months, days := rapid.IntRange(-5000, 5000).Draw(rt, "months"), rapid.IntRange(-5000, 5000).Draw(rt, "days")
		micros := rapid.Int64Range(-1e12, 1e12).Draw(rt, "micros")
		return cell{
			fmt.Sprintf(`"P%dM%dDT%sS"`, months, days, apd.New(micros, -6).Text('f')),
			fmt.Sprintf("%d %d %d", months, days, micros),
		}
	})
}
