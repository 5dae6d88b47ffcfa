package sinks

import (
	"bytes"
	"time"

	"github.com/oncestream/oncestream/schema"
)

// numberAs reads a number, or text of one.
func numberAs(v schema.Value, conversion string) (decimal, error) {
	if v.Kind == schema.Bytes {
		v.Kind = schema.String
	}
	if v.Kind != schema.Number && v.Kind != schema.String {
		return decimal{}, unreadable(v, conversion, "a number is needed")
	}
	d, ok := scanDecimal(v.Raw)
	if !ok {
		return d, unreadable(v, conversion, "a decimal number is needed")
	}
	return d, nil
}

// times returns the value × 10^power where that is whole and 64 bits hold it.
func (d *decimal) times(power int) (int64, bool) {
	if d.zero {
		return 0, true
	}
	return scaled(d, d.low+power)
}

// epoch makes RFC 3339 text of a number in units of 10^power nanoseconds.
func epoch(power int) func(schema.Value) (schema.Value, error) {
	return func(v schema.Value) (schema.Value, error) {
		d, err := numberAs(v, "epoch")
		if err != nil {
			return v, err
		}
		if micros, ok := d.times(power - 3); ok {
			return moments(v, time.UnixMicro(micros))
		}
		nanos, ok := d.times(power) // reaches from 1677 to 2262 only
		if !ok {
			return v, outside(v, "epoch", "it is finer than a nanosecond, or too far away")
		}
		return moments(v, time.Unix(0, nanos))
	}
}

func moments(v schema.Value, t time.Time) (schema.Value, error) {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return v, outside(v, "epoch", "years run from 0001 to 9999")
	}
	return textValue(t.AppendFormat(nil, time.RFC3339Nano)), nil
}

func epochDate(v schema.Value) (schema.Value, error) {
	d, err := numberAs(v, "epoch_days")
	if err != nil {
		return v, err
	}
	const most = 4_000_000 // days, beyond the year 9999 either way
	days, ok := d.times(0)
	if !ok || days > most || days < -most {
		return v, outside(v, "epoch_days", "it is no whole number of days within the years 0001 to 9999")
	}
	out, err := moments(v, time.Unix(days*86400, 0))
	if err != nil {
		return v, err
	}
	return textValue(out.Raw[:len(time.DateOnly)]), nil
}

// timeOfDay makes text of a number in units of 10^power microseconds.
func timeOfDay(power int) func(schema.Value) (schema.Value, error) {
	return func(v schema.Value) (schema.Value, error) {
		d, err := numberAs(v, "time of day")
		if err != nil {
			return v, err
		}
		micros, ok := d.times(power)
		if !ok || micros < 0 || micros >= 86400e6 {
			return v, outside(v, "time of day", "it is no whole number of microseconds within a day")
		}
		return textValue(time.UnixMicro(micros).UTC().AppendFormat(nil, "15:04:05.999999")), nil
	}
}

// truncate cuts the digits behind the sixth after the second.
func truncate(v schema.Value) (schema.Value, error) {
	if v.Kind != schema.String {
		return v, unreadable(v, "truncate", "text is needed; a number is read by another conversion before")
	}
	point := bytes.IndexByte(v.Raw, '.')
	end := point + 1
	for point >= 0 && end < len(v.Raw) && v.Raw[end] >= '0' && v.Raw[end] <= '9' {
		end++
	}
	if point < 0 || end-point <= 7 {
		return v, nil
	}
	return textValue(append(append([]byte(nil), v.Raw[:point+7]...), v.Raw[end:]...)), nil
}
